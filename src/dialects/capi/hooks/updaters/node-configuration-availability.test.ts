/** Proves when the updater for files, keys and arguments says that a Machine stays available. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../../../test/support/builders/nodes.ts';
import { buildTriple } from '../../../../../test/support/capi/triples.ts';
import { later } from '../../../../../test/support/clock/times.ts';
import { encodePresence } from '../../../../signal/agent-presence.ts';
import { AGENT_ANNOTATION } from '../../../../signal/names.ts';
import type { Json } from '../../../../util/json.ts';
import { MACHINE_SHAPE } from '../can-update.ts';
import { claimConfiguration } from './node-configuration.ts';

const presence = encodePresence({
  version: '1',
  since: later(0),
  configurable: ['/etc/demo', 'user:alice', 'kubelet'],
});
const own = [{ node: buildNode('n1', { annotations: { [AGENT_ANNOTATION]: presence } }) }];

const FILE = { files: [{ path: '/etc/demo/x', content: 'two' }] };
const keyOf = (key: string) => ({ users: [{ name: 'alice', sshAuthorizedKeys: [key] }] });
/** A KubeadmConfig that sets the log level of the kubelet. */
const logging = (level: string) => {
  const list = { nodeRegistration: { kubeletExtraArgs: [{ name: 'v', value: level }] } };
  return { initConfiguration: list, joinConfiguration: list };
};

test.each<[string, Json, Json, number, false | undefined]>([
  ['a changed file restarts nothing, so the Machine stays available', {}, FILE, 1, false],
  ['a key restarts nothing', keyOf('a'), keyOf('b'), 1, false],
  [
    'a changed kubelet argument restarts the kubelet, so Refit does not promise availability',
    logging('2'),
    logging('4'),
    2,
    undefined,
  ],
  [
    'a file next to arguments may restart the kubelet, because the agent sets all of them',
    logging('4'),
    { ...logging('4'), ...FILE },
    1,
    undefined,
  ],
  ['without a covered change there is nothing to say', FILE, FILE, 0, undefined],
])('%s', (_name, from, to, covered, wanted) => {
  const current = buildTriple({ bootstrap: from });
  const desired = buildTriple({ bootstrap: to });
  const answer = claimConfiguration('CanUpdateMachine', MACHINE_SHAPE, { current, desired }, own);
  expect(answer.message).toBe(`covers ${covered} ${covered === 1 ? 'change' : 'changes'}`);
  expect(answer.affectsAvailability).toBe(wanted);
});
