/** Proves which kinds the dialect reads in addition to its plans. */
import { expect, test } from 'vitest';
import { buildControlNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { type ControlNode, controlNodes } from '../../../signal/names.ts';
import { autopilot } from './autopilot-dialect.ts';

const withAddresses = (
  name: string,
  addresses?: { type: string; address: string }[],
): ControlNode => ({
  ...buildControlNode(name),
  status: addresses ? { addresses } : {},
});

test('every ControlNode is an API server endpoint at its first InternalIP, in the plan or not', () => {
  const nodes = [
    withAddresses('c1', [
      { type: 'Hostname', address: 'c1' },
      { type: 'InternalIP', address: '10.0.0.1' },
      { type: 'InternalIP', address: '10.9.0.1' },
    ]),
    withAddresses('c2', [{ type: 'Hostname', address: 'c2' }]),
    withAddresses('c3'),
    { ...buildControlNode('c4'), status: {} },
  ];
  expect(autopilot.endpoints(buildWorld(nodes, []))).toEqual([
    { name: 'c1', host: '10.0.0.1' },
    { name: 'c2', host: undefined },
    { name: 'c3', host: undefined },
    { name: 'c4', host: undefined },
  ]);
});

test('a controller that tells another version wakes the engine; one that only writes the same anew does not', () => {
  const watched = autopilot.watched.find(({ resource }) => resource === controlNodes);
  const at = (k0sVersion: string): ControlNode => ({
    ...buildControlNode('c1'),
    status: { k0sVersion },
  });
  expect(watched?.isRelevant(at('v1.36.3+k0s.0'), at('v1.36.3+k0s.1'))).toBe(true);
  expect(watched?.isRelevant(at('v1.36.3+k0s.0'), at('v1.36.3+k0s.0'))).toBe(false);
});

test('controllers are ControlNodes and workers are Nodes; status shards are read too', () => {
  expect(
    [autopilot.plans, ...autopilot.watched.map(({ resource }) => resource)].map(({ kind }) => kind),
  ).toEqual(['Plan', 'ControlNode', 'Node', 'StatusShard']);
});
