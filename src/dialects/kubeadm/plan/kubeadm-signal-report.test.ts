/** Proves that invalid reports are ignored. */
import { expect, test } from 'vitest';
import { reportOn } from './kubeadm-signal.ts';

const VALID = {
  rollout: 'r',
  target: 'w1',
  attempt: 'now',
  state: 'working',
  step: 'Stage',
  since: 'now',
  spent: {},
};
const LIES = [
  { spent: 'x' },
  { spent: null },
  { message: {} },
  { message: null },
  { since: 5 },
  { state: 'x' },
  { step: [] },
];

test.each([
  '',
  '{',
  '[]',
  '{"attempt":1}',
  ...LIES.map((lie) => JSON.stringify({ ...VALID, ...lie })),
])('a report that cannot be read counts as none: %j', (text) => {
  expect(
    reportOn({ metadata: { name: 'w1', annotations: { 'upgrade.refit.dev/kubeadm': text } } }),
  ).toBeUndefined();
});
