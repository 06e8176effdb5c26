/** Proves that a Node loses its bulk in memory, and nothing else. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/builders/nodes.ts';
import { trimNode } from './predicates.ts';

test('images and volumes are not kept, whatever else the Node says is', () => {
  const node = buildNode('w1');
  const status = { ...node.status, future: { a: 1 } };
  const whole = {
    ...node,
    status: { ...status, images: [{ names: ['a'] }], volumesInUse: ['v'], volumesAttached: [] },
  };
  expect(trimNode(whole)).toEqual({ ...node, status });
});

test('a Node without status is kept as it is', () => {
  const { status: _, ...node } = buildNode('w1');
  expect(trimNode(node)).toBe(node);
});
