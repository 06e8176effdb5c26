/** Shows how a drain treats each kind of pod, with the default options and with the strictest options. */
import { expect, test } from 'vitest';
import { buildPod, type PodTraits } from '../../test/support/builders/pods.ts';
import { HOOK_LABEL, HOOK_NODE_ANNOTATION } from './own-pods.ts';
import { DEFAULT_DRAIN, type DrainOptions, judgePod, type PodVerdict, sortPods } from './pods.ts';

const EVICT = 'evict';
const ENDING = 'ending';
const LEFT = 'left';
const LOCAL = { refused: 'has data in an emptyDir volume, which would be lost' } as const;
const BARE = { refused: 'has no controller, so nothing would create it again' } as const;
const LOST = {
  refused: 'belongs to a DaemonSet that is gone, so nothing would create it again',
} as const;

const STRICT: DrainOptions = { localData: 'refuse', unmanagedPods: 'refuse' };
const mirror = { annotations: { 'kubernetes.io/config.mirror': 'hash' } };
const deleted = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const daemon = { controller: 'DaemonSet/agent' };
const lost = { controller: 'DaemonSet/lost' };

/** Returns the traits of a pod for a hook of this Node. Every pod of these tests runs on n1. */
function hookPod(node: string, controller: string): PodTraits {
  const labels = { [HOOK_LABEL]: 'detach' };
  return { controller, metadata: { labels, annotations: { [HOOK_NODE_ANNOTATION]: node } } };
}

test.each<[string, PodTraits, PodVerdict, PodVerdict]>([
  ['of a ReplicaSet', {}, EVICT, EVICT],
  ['that is Pending', { phase: 'Pending' }, EVICT, EVICT],
  ['with an emptyDir', { emptyDir: true }, EVICT, LOCAL],
  ['without a controller', { controller: null }, EVICT, BARE],
  ['without a controller, with an emptyDir', { controller: null, emptyDir: true }, EVICT, LOCAL],
  [
    'of Refit itself',
    {
      metadata: {
        labels: { 'app.kubernetes.io/name': 'refit', 'upgrade.cattle.io/controller': 'x' },
      },
    },
    LEFT,
    LEFT,
  ],
  [
    'of another controller of Plans',
    { metadata: { labels: { 'upgrade.cattle.io/controller': 'x' } } },
    EVICT,
    EVICT,
  ],
  ['of a hook for its node', hookPod('n1', 'Job/hook'), LEFT, LEFT],
  ['of a hook for another node', hookPod('n2', 'Job/hook'), EVICT, EVICT],
  ['of a hook for its node, but of no Job', hookPod('n1', 'ReplicaSet/hook'), EVICT, EVICT],
  ['of a DaemonSet', daemon, LEFT, LEFT],
  ['of a DaemonSet, with an emptyDir', { ...daemon, emptyDir: true }, LEFT, LEFT],
  ['of a DaemonSet, on its way out', { ...daemon, metadata: deleted }, LEFT, LEFT],
  ['of a DaemonSet that is gone', lost, EVICT, LOST],
  [
    'of another kind called DaemonSet',
    {
      metadata: {
        ownerReferences: [
          {
            apiVersion: 'x.example/v1',
            kind: 'DaemonSet',
            name: 'agent',
            uid: 'u',
            controller: true,
          },
        ],
      },
    },
    EVICT,
    EVICT,
  ],
  [
    'owned but not controlled by a DaemonSet',
    {
      metadata: {
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'agent', uid: 'u' }],
      },
    },
    EVICT,
    BARE,
  ],
  ['from a file', { controller: null, metadata: mirror }, LEFT, LEFT],
  ['that succeeded', { phase: 'Succeeded' }, LEFT, LEFT],
  [
    'that failed, without a controller, with an emptyDir',
    { phase: 'Failed', controller: null, emptyDir: true },
    LEFT,
    LEFT,
  ],
  ['that succeeded and is on its way out', { phase: 'Succeeded', metadata: deleted }, LEFT, LEFT],
  ['on its way out', { metadata: deleted }, ENDING, ENDING],
  [
    'on its way out, without a controller, with an emptyDir',
    { controller: null, emptyDir: true, metadata: deleted },
    ENDING,
    ENDING,
  ],
])('a pod %s', (_name, traits, byDefault, strictly) => {
  const pod = buildPod('p', traits);
  const facts = { isOrphaned: () => traits === lost, ruleFor: () => undefined };
  expect(judgePod(pod, DEFAULT_DRAIN, facts)).toEqual(byDefault);
  expect(judgePod(pod, STRICT, facts)).toEqual(strictly);
});

test('pods are sorted by what becomes of them', () => {
  const web = buildPod('web');
  const ends = buildPod('ends', { metadata: deleted });
  const agent = buildPod('agent', daemon);
  const bare = buildPod('bare', { controller: null });
  const facts = { isOrphaned: () => false, ruleFor: () => undefined };
  expect(
    sortPods([web, ends, agent, bare], { ...DEFAULT_DRAIN, unmanagedPods: 'refuse' }, facts),
  ).toEqual({
    evict: [web],
    ending: [ends],
    awaited: [],
    refused: [
      { pod: 'default/bare', reason: 'has no controller, so nothing would create it again' },
    ],
  });
});
