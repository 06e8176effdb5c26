/** Proves which entries of a KubeadmConfig the agents can change, if entries have unusual names or do not change. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../../../test/support/builders/nodes.ts';
import { buildTriple } from '../../../../../test/support/capi/triples.ts';
import { later } from '../../../../../test/support/clock/times.ts';
import type { Machine } from '../../../../api/capi/machine.ts';
import type { Node } from '../../../../kube/resources.ts';
import { encodePresence } from '../../../../signal/agent-presence.ts';
import { AGENT_ANNOTATION } from '../../../../signal/names.ts';
import { MOST_CHARACTERS } from '../../../../signal/node-configuration.ts';
import type { Json } from '../../../../util/json.ts';
import { MACHINE_SHAPE } from '../can-update.ts';
import { claimConfiguration } from './node-configuration.ts';

/**
 * Returns a Machine and its Node, whose agent may change what `configurable` lists, for example files below a
 * directory.
 */
function allowing(...configurable: string[]): { machine: Machine; node: Node } {
  const text = encodePresence({ version: '1', since: later(0), configurable });
  const machine = { metadata: { name: 'm1', namespace: 'default' } };
  return { machine, node: buildNode('n1', { annotations: { [AGENT_ANNOTATION]: text } }) };
}

function isClaimed(from: Json, to: Json, own = [allowing('/etc/demo', 'user:alice')]): boolean {
  const current = buildTriple({ bootstrap: from });
  const desired = buildTriple({ bootstrap: to });
  const answer = claimConfiguration('CanUpdateMachine', MACHINE_SHAPE, { current, desired }, own);
  return answer.bootstrapConfigPatch !== undefined;
}

const filesOf = (...files: Json[]): Json => ({ files });
const keysOf = (...sshAuthorizedKeys: string[]): Json => ({
  users: [{ name: 'alice', sshAuthorizedKeys }],
});
const demo = { path: '/etc/demo/x', content: 'b' };
const template = { path: '/etc/demo/y', content: '{{ a }}' };

test.each<[string, Json, Json, boolean]>([
  [
    'an entry that no agent could make, but that stays as it is',
    filesOf(template),
    filesOf(template, demo),
    true,
  ],
  ['an entry that no agent can make', filesOf(), filesOf(template, demo), false],
  ['an entry that is no object', {}, filesOf(null, demo), false],
  ['an entry whose name is a number', {}, filesOf({ path: 7, content: 'a' }, demo), false],
  ['keys as people have them', keysOf('ssh-ed25519 A me'), keysOf('ssh-ed25519 B me'), true],
  ['a change from what cannot be read', { files: 'x' }, filesOf(demo), false],
])('%s', (_what, from, to, wanted) => {
  expect(isClaimed(from, to)).toBe(wanted);
});

test('a file is claimed only if the agents on all Nodes may change it', () => {
  const both = [allowing('/etc/demo'), allowing('/etc/other')];
  expect(isClaimed({}, filesOf(demo), both)).toBe(false);
  expect(isClaimed({}, filesOf(demo), [allowing('/etc/demo'), allowing('/etc/demo')])).toBe(true);
});

test('all items together may be as long as a Node can hold', () => {
  const { length } = JSON.stringify([{ name: demo.path, content: '', mode: 0o644 }]);
  // The Node stores the content as base64: every 3 bytes become 4 characters. A line break is added at the end of the
  // content.
  const bytes = Math.floor((MOST_CHARACTERS - length) / 4) * 3 - 1;
  const ofBytes = (count: number): Json => filesOf({ ...demo, content: 'x'.repeat(count) });
  expect(isClaimed({}, ofBytes(bytes))).toBe(true);
  expect(isClaimed({}, ofBytes(bytes + 3))).toBe(false);
});
