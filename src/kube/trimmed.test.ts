/**
 * Tests that the large parts of a Node, and nothing else, are removed in memory before the next
 * page is read.
 */
import { expect, test } from 'vitest';
import { buildNode } from '../../test/support/builders/nodes.ts';
import type { ListAllOptions } from './client.ts';
import type { Node } from './resources.ts';
import { listNodes, trimNode } from './trimmed.ts';

test('what Refit never reads is not kept, whatever else the Node says is', () => {
  const node = buildNode('w1');
  const ready = { type: 'Ready', status: 'True' };
  const ours = { type: 'MaintenanceInProgress', status: 'False' };
  const status = { ...node.status, future: { a: 1 }, conditions: [ready, ours] };
  const pressure = {
    type: 'DiskPressure',
    status: 'False',
    message: 'kubelet has no disk pressure',
  };
  const whole = {
    ...node,
    status: {
      ...status,
      conditions: [ready, pressure, ours],
      images: [{ names: ['a'] }],
      volumesInUse: ['v'],
      volumesAttached: [],
      capacity: { memory: '32Gi' },
      allocatable: { memory: '31Gi' },
      daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
    },
  };
  expect(trimNode(whole)).toEqual({ ...node, status });
});

test('a Node without status is kept as it is', () => {
  const { status: _, ...node } = buildNode('w1');
  expect(trimNode(node)).toBe(node);
});

test('a list of Nodes keeps labels, which anything may select by, and neither images nor managed fields', async () => {
  const node = buildNode('w1');
  const whole = {
    ...node,
    metadata: { ...node.metadata, labels: { pool: 'blue' }, managedFields: [{ manager: 'k' }] },
    status: { ...node.status, images: [{ names: ['a'] }] },
  };
  const listAll = async (_kind: unknown, { transform }: ListAllOptions<Node>) =>
    await Promise.resolve({ metadata: {}, items: [transform?.(whole) ?? whole] });
  const { items } = await listNodes({ listAll } as never);
  expect(items).toEqual([{ ...node, metadata: { ...node.metadata, labels: { pool: 'blue' } } }]);
});
