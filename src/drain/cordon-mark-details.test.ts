/** Shows how marks of Refit are read on Nodes with few fields, and how unusual texts of owners are read. */
import { expect, test } from 'vitest';
import type { Node } from '../kube/resources.ts';
import {
  CORDON_ANNOTATION,
  exclusionOf,
  isMarkStale,
  pendingOwner,
  readOwner,
  withCordon,
  withoutPendingTaint,
} from './cordon-marks.ts';

const MARKED: Node = { metadata: { name: 'n1', annotations: { [CORDON_ANNOTATION]: 'plan/1' } } };

function cordonedBy(...managers: readonly string[]): Node {
  const fieldsV1 = { 'f:spec': { 'f:unschedulable': {} } };
  const managedFields = managers.map((manager) => ({ manager, fieldsV1 }));
  return {
    metadata: { ...MARKED.metadata, managedFields },
    spec: { unschedulable: true },
  };
}

test.each([
  [['refit-agent'], false],
  [['their-refit'], true],
  [['refit', 'kubectl-cordon'], true],
])('the mark beside a cordon of the field managers %j is stale: %s', (managers, isStale) => {
  expect(isMarkStale(cordonedBy(...managers))).toBe(isStale);
});

test('a Node without a spec has a stale mark, can be cordoned, and has no taint', () => {
  expect(isMarkStale(MARKED)).toBe(true);
  expect(withCordon(MARKED, 'plan/2').spec).toEqual({ unschedulable: true });
  expect(pendingOwner(MARKED)).toBeUndefined();
  expect(withoutPendingTaint(MARKED, 'plan')).toBe(MARKED);
});

test('a Node without labels and without taints has no mark of Refit', () => {
  expect(exclusionOf({ metadata: { name: 'n1' } })).toBeUndefined();
  expect(pendingOwner({ metadata: { name: 'n1' }, spec: {} })).toBeUndefined();
});

test.each([
  ['id/Plan', { plan: 'id', attempt: 'Plan', kind: undefined }],
  ['a/b/Plan', { plan: 'a', attempt: 'b', kind: 'Plan' }],
  ['a/b/Plan-2', { plan: 'a/b', attempt: 'Plan-2', kind: undefined }],
  ['a/b/2Plan', { plan: 'a/b', attempt: '2Plan', kind: undefined }],
  ['a/b/', { plan: 'a/b', attempt: '', kind: undefined }],
])('the text "%s" is read from its end', (text, owner) => {
  expect(readOwner(text)).toEqual(owner);
});
