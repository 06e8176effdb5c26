/**
 * Tests that an agent that drains its own node does this as the policy requests. The process is real, and the leader
 * leaves the drain to the nodes.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cordonOwner } from '../../src/drain/cordon-marks.ts';
import { namespaces, nodes, pods } from '../../src/kube/resources.ts';
import type { AgentPolicy } from '../../src/signal/annotations.ts';
import { controlNodes, nodeNameOf, SIGNAL_STATUSES } from '../../src/signal/names.ts';
import { buildPod } from '../support/builders/pods.ts';
import { type MemoryCluster, startMemoryCluster } from './memory-cluster.ts';
import { NEW, Rig } from './rig.ts';

let cluster: MemoryCluster;
let count = 0;

beforeAll(async () => {
  cluster = await startMemoryCluster();
  await cluster.admin.create(namespaces, { metadata: { name: 'default' } }).catch(() => undefined);
});
afterAll(async () => await cluster.stop());

const DONE = [...SIGNAL_STATUSES];
const NOT_DONE = ['Downloading', 'Cordoning', 'Failed'];

interface Case {
  readonly policy?: AgentPolicy;
  /** True if a finalizer keeps the pod for ever. */
  readonly isStuck?: boolean;
  readonly statuses: string[];
  readonly left: number;
  readonly reason?: RegExp;
  readonly late?: 'drain';
}

test.each<[string, Case]>([
  ['nothing is asked: the pod goes', { statuses: DONE, left: 0 }],
  ['no drain: the pod stays', { policy: { drain: { enabled: false } }, statuses: DONE, left: 1 }],
  [
    'local data is refused: the pod stays, and nothing was touched',
    {
      policy: { drain: { localData: 'refuse' } },
      statuses: NOT_DONE,
      left: 1,
      reason:
        /^default\/app has data in an emptyDir volume, which would be lost; spec\.drain\.deleteEmptyDirData: true of an UpgradePolicy allows this$/,
    },
  ],
  [
    'a deadline: it is kept without a leader too',
    {
      policy: { drain: { timeoutMs: 1_000 } },
      isStuck: true,
      statuses: NOT_DONE,
      left: 1,
      reason: /^the node was not drained within 1 s/,
      late: 'drain',
    },
  ],
])('%s', async (_name, { policy, isStuck, statuses, left, reason, late }) => {
  const { admin, kubeconfig } = cluster;
  const name = `own${++count}`;
  await using rig = await Rig.start({ name, admin, kubeconfig, ...(policy && { policy }) });
  const metadata = isStuck ? { finalizers: ['example.com/stays'] } : {};
  const { spec, ...pod } = buildPod('app', { node: name, emptyDir: true, metadata });
  const grace = { terminationGracePeriodSeconds: 0, containers: [{ name: 'c', image: 'i' }] };
  await admin.create(pods, { ...pod, spec: { ...spec, ...grace } });
  rig.startAgent();
  await rig.send('/new', NEW);
  await rig.end();
  expect(rig.statuses).toEqual(statuses);
  const report = await rig.report();
  expect(report?.reason ?? '').toMatch(reason ?? /^$/);
  expect(report?.late).toBe(late);
  const node = await admin.get(nodes, name);
  expect([node.spec?.unschedulable, cordonOwner(node)]).toEqual([undefined, undefined]);
  const found = (await admin.list(pods, { fieldSelector: `spec.nodeName=${name}` })).items;
  expect(found).toHaveLength(left);
  for (const { metadata: theirs } of found) {
    const at = { namespace: 'default' };
    await admin.patch(
      pods,
      theirs.name,
      { metadata: { finalizers: null } },
      { type: 'merge', ...at },
    );
    await admin.delete(pods, theirs.name, at).catch(() => undefined);
  }
});

test('on a controller whose ControlNode is deleted, and not registered again, the cordon goes all the same', async () => {
  const { admin, kubeconfig } = cluster;
  const name = `own${++count}`;
  const node = `own${count}-node`;
  const serviceFlags = ['--enable-worker', `--kubelet-extra-args=--hostname-override=${node}`];
  await using rig = await Rig.start({ name, role: 'controller', admin, kubeconfig, serviceFlags });
  await admin.create(nodes, { metadata: { name: node } });
  const stays = { finalizers: ['example.com/stays'] };
  const { spec, ...pod } = buildPod('stuck', { node, metadata: stays });
  await admin.create(pods, { ...pod, spec: { ...spec, containers: [{ name: 'c', image: 'i' }] } });
  rig.startAgent();
  await rig.until(async () => expect(nodeNameOf(await rig.object())).toBe(node));
  await rig.send('/new', NEW);
  const isCordoned = async (): Promise<boolean> =>
    cordonOwner(await admin.get(nodes, node)) !== undefined;
  await rig.until(async () => expect(await isCordoned()).toBe(true));
  // While the service does not answer, the agent cannot learn from it that this node is a controller.
  await rig.host.stop();
  await admin.delete(controlNodes, name);
  await rig.until(async () => expect(await rig.journal()).toContain('"idle"'));
  expect(await isCordoned()).toBe(false);
  await admin.patch(
    pods,
    'stuck',
    { metadata: { finalizers: null } },
    { type: 'merge', namespace: 'default' },
  );
  await rig.host.resume();
  await rig.until(async () => expect(nodeNameOf(await rig.object())).toBe(node));
});
