/** Tests which question `refit kubeadm apply` asks the user. */
import { expect, test } from 'vitest';
import { questionOf } from './kubeadm-command.ts';

const none = {
  version: 'v1.36.3',
  concurrent: 1,
  leader: [],
  followers: [],
  kubelets: [],
  workers: [],
  certificates: [],
};
const request = { ...none, leader: ['cp1'], followers: ['cp2'], workers: ['w1'] };
const renewal = { ...none, certificates: ['cp1', 'cp2'] };

test.each([
  [request, 0, 0, 'Upgrade 3 hosts to v1.36.3?'],
  [request, 2, 1, 'Upgrade 3 hosts to v1.36.3, then 2 addons and 1 MachineDeployments?'],
  [renewal, 0, 0, 'Renew the certificates of cp1. Renew the certificates of cp2?'],
  [
    { ...request, certificates: ['cp3'] },
    0,
    0,
    'Renew the certificates of cp3. Upgrade 3 hosts to v1.36.3?',
  ],
])('%j, %i addons, %i MachineDeployments: %s', (wanted, addons, pools, expected) => {
  expect(questionOf(wanted, addons, pools)).toBe(expected);
});
