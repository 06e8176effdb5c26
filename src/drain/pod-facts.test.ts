/** Shows how pods with missing or unusual fields are judged. */
import { expect, test } from 'vitest';
import { PodApi } from '../../test/support/builders/pod-api.ts';
import { buildPod } from '../../test/support/builders/pods.ts';
import type { OwnerReference, Pod } from '../kube/resources.ts';
import { HOOK_LABEL, HOOK_NODE_ANNOTATION, isHookOfItsNode } from './own-pods.ts';
import { podRulesOf } from './pod-rules.ts';
import { describeRefusedPods, isJobPod, judgePod } from './pods.ts';

const FACTS = { isOrphaned: () => false, ruleFor: () => undefined };
const { signal: abort } = new AbortController();

function ownedBy(change: Partial<OwnerReference>): Pod {
  const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'j', uid: 'j-uid', controller: true };
  return { metadata: { name: 'p', ownerReferences: [{ ...owner, ...change }] } };
}

test('a pod is of a Job if a Job of the group batch controls it', () => {
  expect(isJobPod(ownedBy({}))).toBe(true);
  expect(isJobPod(ownedBy({ apiVersion: 'acme.example/v1' }))).toBe(false);
  expect(isJobPod(ownedBy({ kind: 'ReplicaSet' }))).toBe(false);
  expect(isJobPod(ownedBy({ controller: false }))).toBe(false);
  expect(isJobPod({ metadata: { name: 'p' } })).toBe(false);
});

test('only a pod with an emptyDir among its volumes has local data', () => {
  const options = { localData: 'refuse', unmanagedPods: 'evict' } as const;
  const pod = buildPod('p');
  const withVolumes = (...volumes: { name: string; emptyDir?: object }[]): Pod => ({
    ...pod,
    spec: { ...pod.spec, volumes },
  });
  const refused = { refused: 'has data in an emptyDir volume, which would be lost' };
  const claim = { name: 'v', persistentVolumeClaim: { claimName: 'c' } };
  expect(judgePod(withVolumes(claim, { name: 'e', emptyDir: {} }), options, FACTS)).toEqual(
    refused,
  );
  expect(judgePod(withVolumes(claim), options, FACTS)).toBe('evict');
  expect(judgePod(pod, options, FACTS)).toBe('evict');
  expect(judgePod({ metadata: { name: 'p' } }, options, FACTS)).toBe('evict');
});

test('a refusal names every pod, and each field that allows the evictions once', () => {
  const bare = 'has no controller, so nothing would create it again';
  const gone = 'belongs to a DaemonSet that is gone, so nothing would create it again';
  const refused = [
    { pod: 'default/a', reason: bare },
    { pod: 'default/b', reason: gone },
    { pod: 'default/c', reason: 'has data in an emptyDir volume, which would be lost' },
  ] as const;
  const pods = `default/a ${bare}; default/b ${gone}; default/c has data in an emptyDir volume, which would be lost`;
  expect(describeRefusedPods(refused, {})).toBe(
    `${pods}; spec.drain.force: true and spec.drain.deleteEmptyDirData: true of an UpgradePolicy allows this`,
  );
  const fields = { of: 'the Plan', localData: 'a: true', unmanagedPods: 'b: true' };
  expect(describeRefusedPods(refused, { fields })).toBe(
    `${pods}; b: true and a: true of the Plan allows this`,
  );
});

test('a pod is of a hook for its node only if it has the label and names the node on which it runs', () => {
  const labels = { [HOOK_LABEL]: 'detach' };
  const annotations = { [HOOK_NODE_ANNOTATION]: 'n1' };
  expect(isHookOfItsNode(buildPod('p', { metadata: { labels, annotations } }))).toBe(true);
  expect(isHookOfItsNode(buildPod('p', { metadata: { annotations } }))).toBe(false);
  expect(isHookOfItsNode({ metadata: { name: 'p', labels, annotations }, spec: {} })).toBe(false);
  expect(isHookOfItsNode({ metadata: { name: 'p', labels }, spec: {} })).toBe(false);
  expect(isHookOfItsNode({ metadata: { name: 'p', labels } })).toBe(false);
});

test('a rule applies if any of its entries selects the pod, and namespaces are read if any entry needs them', async () => {
  const api = new PodApi();
  api.namespaces.set('shop', { team: 'shop' });
  const rule = {
    pods: [
      { selector: { matchLabels: { app: 'db' } } },
      { namespaceSelector: { matchLabels: { team: 'shop' } } },
    ],
    action: 'wait',
    turn: 3,
  } as const;
  const rules = podRulesOf(api.client, [rule]);
  const inShop = buildPod('a', { namespace: 'shop' });
  await rules.learn([inShop], abort);
  expect(api.reads).toEqual(['get namespaces undefined/shop']);
  expect(rules.ruleFor(inShop)).toBe(rule);
  expect(rules.ruleFor(buildPod('b', { labels: { app: 'db' } }))).toBe(rule);
  expect(rules.ruleFor(buildPod('c'))).toBeUndefined();
});
