/**
 * Tests the health check of DaemonSets on a real API server, with the real DaemonSet controller. The test itself acts
 * as the kubelets.
 */
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { nodeRollouts, upgradePolicies } from '../../src/api/kinds.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { nodes, pods } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { apply, installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { PATIENCE, Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const NAMESPACE = 'default';
const NAME = 'health-net';
/** Refit runs a check every 15 s, and this test waits for several results. */
const PATIENT = { timeout: 420_000 };
const NODES = ['daemon-w1', 'daemon-w2', 'daemon-w3'] as const;

let admin: KubeClient;

beforeAll(async () => {
  await installKinds();
});

async function addDaemonSet(): Promise<void> {
  const labels = { app: NAME };
  const spec = {
    terminationGracePeriodSeconds: 0,
    containers: [{ name: 'net', image: 'example.com/none' }],
  };
  const daemonSet = {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: NAME, namespace: NAMESPACE },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  };
  await apply(JSON.stringify(daemonSet));
  onTestFinished(async () => {
    await kubectlAs('admin', ['delete', 'daemonset', NAME, '-n', NAMESPACE, '--wait=true']);
    // The deletion is forced, because no kubelet ends the pods.
    const force = ['--force', '--grace-period=0'];
    await kubectlAs('admin', ['delete', 'pods', '-n', NAMESPACE, '-l', `app=${NAME}`, ...force]);
  });
}

/** Waits for the pod on the node, and sets its Ready condition as the kubelet would. */
async function sayPod(node: string, status: 'True' | 'False'): Promise<void> {
  await vi.waitFor(async () => {
    const labelSelector = `app=${NAME}`;
    const { items } = await admin.list(pods, { namespace: NAMESPACE, labelSelector });
    const pod = items.find(({ spec }) => spec?.nodeName === node);
    if (pod === undefined) throw new Error(`no pod of the DaemonSet is on ${node}`);
    const patch = { status: { phase: 'Running', conditions: [{ type: 'Ready', status }] } };
    const options = { type: 'merge', subresource: 'status', namespace: NAMESPACE } as const;
    await admin.patch(pods, pod.metadata.name, patch, options);
  }, PATIENCE);
}

async function untilTold(node: string, ...sentences: readonly string[]): Promise<void> {
  const viewer = await kubeconfigFor('viewer');
  await vi.waitFor(async () => {
    const told = (await runRefit('why', node, '--kubeconfig', viewer)).stdout.join(' ');
    for (const sentence of sentences) expect(told.replaceAll(/\s+/g, ' ')).toContain(sentence);
  }, PATIENCE);
}

async function untilStarted(puppets: Puppets, name: string): Promise<void> {
  await vi.waitFor(async () => expect(await puppets.signal(name)).toBeDefined(), PATIENCE);
}

async function shownNodes(): Promise<readonly string[] | undefined> {
  const { items } = await admin.listAll(nodeRollouts);
  return items.flatMap(({ status }) => status?.checks ?? [])[0]?.nodes;
}

test(
  'the next node waits while the pod of a DaemonSet on an upgraded node is not Ready',
  PATIENT,
  async () => {
    admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
    onTestFinished(() => admin.close());
    await admin.create(
      upgradePolicies,
      buildUpgradePolicy('net', { health: { daemonSets: 'All' } }),
    );
    onTestFinished(async () => await admin.delete(upgradePolicies, 'net'));
    await using puppets = await Puppets.create(admin, ...NODES);
    await addDaemonSet();
    const room = { cpu: '4', memory: '8Gi', pods: '10' };
    for (const name of NODES) {
      const patch = { status: { capacity: room, allocatable: room } };
      await admin.patch(nodes, name, patch, { type: 'merge', subresource: 'status' });
    }
    for (const name of NODES) await sayPod(name, 'True');
    // Pods of nodes that are not upgraded do not count.
    await sayPod('daemon-w3', 'False');
    const config = await kubeconfigFor('controller');
    await using leader = new RefitProcess('controller', '--kubeconfig', config);
    await puppets.plan(1);

    await untilStarted(puppets, 'daemon-w1');
    await sayPod('daemon-w1', 'False');
    await puppets.says('daemon-w1', 'Completed');
    await untilTold(
      'daemon-w1',
      'the health check daemonsets of UpgradePolicy net fails: 1 pod of a DaemonSet is not Ready:',
      'on daemon-w1',
    );
    expect(await shownNodes()).toEqual(['daemon-w1']);
    expect(await puppets.signal('daemon-w2')).toBeUndefined();
    await sayPod('daemon-w1', 'True');
    await untilStarted(puppets, 'daemon-w2');

    // A pod that is not Ready on a completed node stops the start of the next node. It does not stop the completion of
    // a node that has already started.
    await sayPod('daemon-w1', 'False');
    await vi.waitFor(async () => expect(await shownNodes()).toEqual(['daemon-w1']), PATIENCE);
    await puppets.says('daemon-w2', 'Completed');
    await vi.waitFor(
      async () => expect((await puppets.recorded())['daemon-w2']).toBe('SignalCompleted'),
      PATIENCE,
    );
    await untilTold('daemon-w3', 'the health check daemonsets of UpgradePolicy net fails');
    expect(await puppets.signal('daemon-w3')).toBeUndefined();
    await sayPod('daemon-w1', 'True');
    await sayPod('daemon-w3', 'True');
    await untilStarted(puppets, 'daemon-w3');
    await puppets.says('daemon-w3', 'Completed');
    expect((await puppets.end()).state).toBe('Completed');
    expect(await leader.stop('SIGTERM')).toBe(0);
  },
);
