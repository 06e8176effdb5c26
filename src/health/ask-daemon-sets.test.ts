/** Tests the health check that the pods of DaemonSets are Ready on upgraded nodes. */
import { expect, test } from 'vitest';
import { buildPod, type PodTraits } from '../../test/support/builders/pods.ts';
import type { KubeClient, ListOptions } from '../kube/client.ts';
import type { Pod } from '../kube/resources.ts';
import { askDaemonSets } from './ask-daemon-sets.ts';
import type { DaemonSetCheck } from './checks.ts';

/** Returns a client that lists these pods, for one node or for all nodes. */
function serving(all: readonly Pod[]): { client: KubeClient; asked: string[] } {
  const asked: string[] = [];
  const listAll = async (_kind: unknown, { fieldSelector = '' }: ListOptions = {}) => {
    asked.push(fieldSelector);
    const node = fieldSelector.split('spec.nodeName=')[1];
    const items = all.filter(({ spec }) => node === undefined || spec?.nodeName === node);
    return await Promise.resolve({ items, metadata: {} });
  };
  return { client: { listAll } as unknown as KubeClient, asked };
}

function podOf(name: string, traits: PodTraits = {}, priorityClassName?: string): Pod {
  const pod = buildPod(name, { controller: 'DaemonSet/cni', ...traits });
  if (priorityClassName === undefined) return pod;
  return { ...pod, spec: { ...pod.spec, priorityClassName } };
}

async function ask(check: Partial<DaemonSetCheck>, all: readonly Pod[], nodes: readonly string[]) {
  const { client, asked } = serving(all);
  const whole: DaemonSetCheck = { kind: 'daemonSets', name: 'daemonsets', pods: 'all', ...check };
  const { signal } = new AbortController();
  return { found: await askDaemonSets(client, whole, new Set(nodes), signal), asked };
}

/** Returns a pod that is not Ready, and has these owners. */
function ownedBy(...owners: readonly { kind: string; controller: boolean }[]): Pod {
  const { metadata, ...pod } = buildPod('cni-1', { ready: false });
  const { ownerReferences: _none, ...others } = metadata;
  if (owners.length === 0) return { ...pod, metadata: others };
  const ownerReferences = owners.map((each) => ({
    apiVersion: 'v1',
    name: 'owner',
    uid: each.kind,
    ...each,
  }));
  return { ...pod, metadata: { ...others, ownerReferences } };
}

function withoutStatus({ status: _none, ...pod }: Pod): Pod {
  return pod;
}

const NODE_CRITICAL = 'system-node-critical';

test.each<[string, Partial<DaemonSetCheck>, Pod[], object]>([
  ['no pod', {}, [], { state: 'passing', message: '0 pods of DaemonSets are Ready' }],
  [
    'a Ready pod',
    {},
    [podOf('cni-1')],
    { state: 'passing', message: '1 pods of DaemonSets are Ready' },
  ],
  [
    'a pod that is not Ready',
    {},
    [podOf('cni-1', { ready: false, namespace: 'kube-system' })],
    {
      state: 'failing',
      message: '1 pod of a DaemonSet is not Ready: kube-system/cni-1 on n1',
      nodes: ['n1'],
    },
  ],
  ['a pod of a ReplicaSet', {}, [buildPod('web', { ready: false })], { state: 'passing' }],
  [
    'a pod on another node',
    {},
    [podOf('cni-1', { ready: false, node: 'n2' })],
    { state: 'passing' },
  ],
  [
    'a pod without a critical class',
    { pods: 'critical' },
    [podOf('log-1', { ready: false })],
    { state: 'passing' },
  ],
  [
    'a pod with a critical class',
    { pods: 'critical' },
    [podOf('cni-1', { ready: false }, NODE_CRITICAL)],
    { state: 'failing' },
  ],
  [
    'a Ready pod that is being deleted',
    {},
    [podOf('cni-1', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })],
    { state: 'failing' },
  ],
  [
    'a pod that a DaemonSet owns but does not control',
    {},
    [ownedBy({ kind: 'DaemonSet', controller: false }, { kind: 'ReplicaSet', controller: true })],
    { state: 'passing', message: '0 pods of DaemonSets are Ready' },
  ],
  [
    'a pod that a DaemonSet controls and another object owns',
    {},
    [ownedBy({ kind: 'Node', controller: false }, { kind: 'DaemonSet', controller: true })],
    { state: 'failing' },
  ],
  [
    'a pod without owners',
    {},
    [ownedBy()],
    { state: 'passing', message: '0 pods of DaemonSets are Ready' },
  ],
  ['a pod without a status', {}, [withoutStatus(podOf('cni-1'))], { state: 'failing' }],
  [
    'five pods that are not Ready',
    {},
    ['a', 'b', 'c', 'd', 'e'].map((name) => podOf(name, { ready: false })),
    {
      message:
        '5 pods of DaemonSets are not Ready: default/a on n1, default/b on n1, default/c on n1 and 2 more',
    },
  ],
])('%s', async (_title, check, all, expected) => {
  const { found } = await ask(check, all, ['n1']);
  expect(found).toMatchObject(expected);
});

test('without upgraded nodes nothing is asked, and many nodes are asked at once', async () => {
  expect((await ask({}, [], [])).asked).toEqual([]);
  const many = Array.from({ length: 21 }, (_each, index) => `n${index}`);
  const unready = podOf('cni-1', { ready: false });
  const { spec: _unassigned, ...pending } = podOf('cni-3', { ready: false });
  const all = [unready, podOf('cni-2', { ready: false, node: 'n99' }), pending];
  const { asked, found } = await ask({}, all, many);
  expect(asked).toEqual(['']);
  expect(found.nodes).toEqual(['n1']);
  expect((await ask({}, all, many.slice(0, 20))).asked).toHaveLength(20);
});
