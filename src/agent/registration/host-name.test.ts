/** Tests which name is used for a Node and for a ControlNode. */
import { hostname } from 'node:os';
import { expect, test } from 'vitest';
import { controlNodeName, kubeletName, nodeName } from './host-name.ts';

const PLACE = { statusSocket: '/s', dataDirectory: '/d' };
const OWN = hostname().trim().toLowerCase();

test.each<[string, object, Record<string, string>, string, string]>([
  ['those of the host if nobody told others', {}, {}, OWN, OWN],
  ['the agent was told', {}, { AUTOPILOT_HOSTNAME: ' Edge-1 ' }, 'edge-1', 'edge-1'],
  ['the service was told', { hostname: 'Edge-2' }, {}, 'edge-2', 'edge-2'],
  ['both were told', { hostname: 'edge-2' }, { AUTOPILOT_HOSTNAME: 'edge-1' }, 'edge-1', 'edge-1'],
  [
    'the agent takes the Node name from the option --hostname-override of the kubelet',
    { hostnameOverride: 'W-7' },
    {},
    OWN,
    'w-7',
  ],
  [
    'kubelet and agent were told',
    { hostnameOverride: 'w-7' },
    { AUTOPILOT_HOSTNAME: 'edge-1' },
    'edge-1',
    'w-7',
  ],
  ['an empty word', { hostname: '' }, { AUTOPILOT_HOSTNAME: '' }, OWN, OWN],
])('the names of the ControlNode and the Node: %s', (_name, found, env, controller, node) => {
  expect(controlNodeName({ ...PLACE, ...found }, env)).toBe(controller);
  expect(nodeName({ ...PLACE, ...found }, env)).toBe(node);
  expect(kubeletName({ ...PLACE, ...found })).toBe('hostnameOverride' in found ? 'w-7' : OWN);
});
