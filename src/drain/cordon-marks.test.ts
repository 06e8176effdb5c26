/** Shows what a cordon and a taint of Refit change in a Node, and that nothing of other owners is changed. */
import { expect, test } from 'vitest';
import { buildNode } from '../../test/support/builders/nodes.ts';
import type { Node } from '../kube/resources.ts';
import {
  CORDON_ANNOTATION,
  cordonOwner,
  EXCLUSION_LABEL,
  exclusionOf,
  isMarkStale,
  PENDING_TAINT,
  pendingOwner,
  withCordon,
  withExclusion,
  withoutAnyCordon,
  withoutCordon,
  withoutPendingTaint,
  withPendingTaint,
} from './cordon-marks.ts';

const OWNER = 'rollout/1';
const OURS = { ...PENDING_TAINT, value: 'rollout' };
const MARK = { [CORDON_ANNOTATION]: OWNER };
const node = (annotations: Record<string, string> | undefined, spec?: Node['spec']): Node => ({
  ...buildNode('w1', annotations ? { annotations } : {}),
  ...(spec ? { spec } : {}),
});
const OTHER_TAINT = { key: 'other', effect: 'NoSchedule' };
/** A taint with the key of Refit but another effect does not belong to Refit. */
const HARD_TAINT = { key: PENDING_TAINT.key, effect: 'NoSchedule' };

const labelled = (of: Node, value: string): Node => ({
  ...of,
  metadata: { ...of.metadata, labels: { ...of.metadata.labels, [EXCLUSION_LABEL]: value } },
});

const change: readonly [string, (node: Node) => Node, Node, Node][] = [
  [
    'cordon a node',
    (it) => withCordon(it, OWNER),
    node({ a: 'b' }, { providerID: 'p' }),
    node({ a: 'b', ...MARK }, { providerID: 'p', unschedulable: true }),
  ],
  [
    'cordon a node without annotations and spec',
    (it) => withCordon(it, OWNER),
    node(undefined),
    node(MARK, { unschedulable: true }),
  ],
  [
    'cordon again what a person uncordoned',
    (it) => withCordon(it, OWNER),
    node({ [CORDON_ANNOTATION]: 'earlier' }),
    node(MARK, { unschedulable: true }),
  ],
  [
    'take our cordon away',
    withoutCordon,
    node({ a: 'b', ...MARK }, { providerID: 'p', unschedulable: true }),
    node({ a: 'b' }, { providerID: 'p' }),
  ],
  [
    'take away the mark on a node that a person uncordoned',
    withoutCordon,
    node({ a: 'b', ...MARK }, {}),
    node({ a: 'b' }, {}),
  ],
  [
    'exclude a node with our cordon from load balancers',
    withExclusion,
    node(MARK, { unschedulable: true }),
    labelled(node(MARK, { unschedulable: true }), 'refit'),
  ],
  [
    'take our cordon and our label away at once',
    withoutCordon,
    labelled(node(MARK, { unschedulable: true }), 'refit'),
    node({}, {}),
  ],
  [
    'take our label away beside the cordon of a person',
    withoutCordon,
    labelled(node({}, { unschedulable: true }), 'refit'),
    node({}, { unschedulable: true }),
  ],
  [
    'take our label away with any cordon',
    withoutAnyCordon,
    labelled(node({}, { unschedulable: true }), 'refit'),
    node({}, {}),
  ],
  [
    'take our label away after a person uncordoned the node',
    withoutAnyCordon,
    labelled(node(MARK, {}), 'refit'),
    node({}, {}),
  ],
  [
    'keep the label of kubeadm',
    withoutCordon,
    labelled(node(MARK, { unschedulable: true }), ''),
    labelled(node({}, {}), ''),
  ],
  [
    'taint',
    (it) => withPendingTaint(it, 'rollout'),
    node(undefined, { taints: [OTHER_TAINT, HARD_TAINT] }),
    node(undefined, { taints: [OTHER_TAINT, HARD_TAINT, OURS] }),
  ],
  [
    'taint a node without spec',
    (it) => withPendingTaint(it, 'rollout'),
    node(undefined),
    node(undefined, { taints: [OURS] }),
  ],
  [
    'remove the taint',
    (it) => withoutPendingTaint(it, 'rollout'),
    node(undefined, { taints: [OURS, HARD_TAINT] }),
    node(undefined, { taints: [HARD_TAINT] }),
  ],
  [
    'remove the taint of an earlier version, which named nobody',
    (it) => withoutPendingTaint(it, 'rollout'),
    node(undefined, { taints: [PENDING_TAINT, HARD_TAINT] }),
    node(undefined, { taints: [HARD_TAINT] }),
  ],
  [
    'remove the only taint',
    (it) => withoutPendingTaint(it, 'rollout'),
    node(undefined, { taints: [OURS], providerID: 'p' }),
    node(undefined, { providerID: 'p' }),
  ],
];

test.each(change)('%s', (_name, act, before, after) => {
  const untouched = structuredClone(before);
  expect(act(before)).toEqual(after);
  expect(before).toEqual(untouched);
});

test.each<[string, (node: Node) => Node, Node]>([
  [
    "somebody else's cordon is not ours",
    (it) => withCordon(it, OWNER),
    node(undefined, { unschedulable: true }),
  ],
  [
    'our cordon keeps its owner',
    (it) => withCordon(it, 'rollout/2'),
    node(MARK, { unschedulable: true }),
  ],
  ['no cordon of ours, no label', withExclusion, node(undefined, { unschedulable: true })],
  ['the label of kubeadm', withExclusion, labelled(node(MARK, { unschedulable: true }), '')],
  ['our label', withExclusion, labelled(node(MARK, { unschedulable: true }), 'refit')],
  [
    'a cordon that Refit did not set stays',
    withoutCordon,
    node({ a: 'b' }, { unschedulable: true }),
  ],
  ['no cordon at all', withoutCordon, node(undefined)],
  [
    'the taint of another is there',
    (it) => withPendingTaint(it, 'other'),
    node(undefined, { taints: [OURS] }),
  ],
  [
    'the taint of another stays',
    (it) => withoutPendingTaint(it, 'other'),
    node(undefined, { taints: [OURS] }),
  ],
  [
    'no taint of ours',
    (it) => withoutPendingTaint(it, 'rollout'),
    node(undefined, { taints: [OTHER_TAINT, HARD_TAINT] }),
  ],
  ['no spec', (it) => withoutPendingTaint(it, 'rollout'), node(undefined)],
])('%s: the very same node', (_name, act, before) => {
  expect(act(before)).toBe(before);
});

test('the owner of a cordon', () => {
  expect(cordonOwner(node(MARK, { unschedulable: true }))).toBe(OWNER);
  expect(cordonOwner(node(undefined, { unschedulable: true }))).toBeUndefined();
});

test('who excluded a node from load balancers', () => {
  expect(exclusionOf(node(undefined))).toBeUndefined();
  expect(exclusionOf(labelled(node(undefined), 'refit'))).toBe('ours');
  expect(exclusionOf(labelled(node(undefined), ''))).toBe('others');
});

test('the owner of a taint', () => {
  expect(pendingOwner(node(undefined, { taints: [HARD_TAINT, OURS] }))).toBe('rollout');
  expect(pendingOwner(node(undefined, { taints: [PENDING_TAINT] }))).toBe('');
  expect(pendingOwner(node(undefined, { taints: [HARD_TAINT] }))).toBeUndefined();
});

test.each([
  ['kubectl-cordon', true],
  ['refit', false],
])('beside a cordon that %s set, our mark is stale: %s', (manager, isStale) => {
  const marked = node(MARK, { unschedulable: true });
  const managedFields = [{ manager, fieldsV1: { 'f:spec': { 'f:unschedulable': {} } } }];
  expect(isMarkStale({ ...marked, metadata: { ...marked.metadata, managedFields } })).toBe(isStale);
});

test('our mark is stale without a cordon, and not where nothing keeps who set it', () => {
  expect(
    [node(MARK, {}), node(MARK, { unschedulable: true }), node(undefined, {})].map(isMarkStale),
  ).toEqual([true, false, false]);
});
