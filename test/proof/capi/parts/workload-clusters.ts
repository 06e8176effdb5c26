/**
 * Tests one extension for two workload clusters, each with its own API server. While one cluster is cut off, the other
 * cluster is updated.
 */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Cluster, startCluster } from '../../../../sandbox/cluster/cluster.ts';
import { nodes } from '../../../../src/kube/resources.ts';
import { applyManifest } from '../../../../tools/controlplane/apply.ts';
import { startControlPlane } from '../../../../tools/controlplane/control-plane.ts';
import { startTcpProxy, type TcpProxy } from '../../../faults/tcp-proxy.ts';
import { MachineNodes } from '../machines/machine-nodes.ts';
import { clusterObjects, NAMESPACE } from '../machines/objects.ts';
import { CONTROL_PLANE_VERSIONS, type Scene } from '../scene.ts';
import { useAddress } from './registration.ts';
import { wantWorkers } from './update.ts';

const FAR = 'far';
const BEFORE = 'v1.36.0+k0s.0';
const AFTER = 'v1.36.1+k0s.0';
const FAILED_CALLS = 2;

/** This part must be the last one, because the API server of the other cluster is gone after it. */
export async function workloadClusters(scene: Scene): Promise<void> {
  const { checks } = scene;
  await using started = new AsyncDisposableStack();
  await serveAll(scene);
  const { far, proxy } = await openFar(scene, started);
  const before = await scene.identities('workers');
  const farBefore = await identityOfWorker(scene, far);
  const version = scene.nextVersion();
  await checks.check(
    'two workload clusters, one cut off: the workers of the other one end in place',
    async () => {
      proxy.partition();
      await wantWorkers(scene, { version: AFTER }, `${FAR}-workers`);
      await scene.failedCalls('core', 'CanUpdateMachineSet', FAILED_CALLS);
      await wantWorkers(scene, { version });
      await scene.settled('workers', version);
      return await scene.wrongAfter('workers', version, before);
    },
  );
  await checks.check(
    'the Machine of the cluster that is cut off is neither replaced nor touched',
    async () => {
      const [machine] = await scene.machines('workers', FAR);
      const node = await far.client.get(nodes, farBefore.node);
      const isTouched =
        node.metadata.annotations?.['upgrade.refit.dev/machine-update'] !== undefined;
      return [
        ...(machine?.metadata.uid === farBefore.uid ? [] : ['the Machine is another one']),
        ...(isTouched ? ['its Node has a request'] : []),
      ];
    },
  );
  await checks.check('it is reached again: its worker ends in place, too', async () => {
    proxy.heal();
    await scene.settled('workers', AFTER, 1, FAR);
    const after = await identityOfWorker(scene, far);
    const { status } = await far.client.get(nodes, farBefore.node);
    const reports = status?.nodeInfo?.kubeletVersion;
    return [
      ...(JSON.stringify(after) === JSON.stringify(farBefore)
        ? []
        : ['the Machine or its Node is not the same']),
      ...(reports === AFTER ? [] : [`its kubelet reports ${reports}`]),
    ];
  });
}

/** Makes the extension find its clusters by their kubeconfig Secrets from now on. */
async function serveAll(scene: Scene): Promise<void> {
  const role = join(import.meta.dirname, '../../../../deploy/rbac-capi-clusters.yaml');
  await applyManifest(scene.kubeconfig, await readFile(role, 'utf8'));
  await scene.running.stop();
  const [, ...flags] = scene.extension.commandLine;
  const args = [...flags, '--workload-clusters', NAMESPACE];
  scene.running = await scene.cluster.startLeading('extension-for-all', 'capi-extension', args);
  await useAddress(scene, scene.extension.url);
}

/** Starts the second cluster. All clients reach its API server through the proxy. */
async function openFar(
  scene: Scene,
  started: AsyncDisposableStack,
): Promise<{ far: Cluster; proxy: TcpProxy }> {
  const { log, abort, refit, directory: whole } = scene.options;
  const directory = join(whole, FAR);
  await mkdir(directory);
  const plane = await startControlPlane({ log, abort });
  started.defer(async () => await plane.stop());
  const far = await startCluster({
    plane,
    directory,
    controllers: 0,
    workers: 0,
    version: BEFORE,
    offers: [],
    restartDelayMs: 300,
    refit: { agent: [refit], controller: [refit] },
  });
  started.defer(async () => await far.stop());
  const proxy = await startTcpProxy({ target: { host: '127.0.0.1', port: plane.port } });
  started.defer(async () => await proxy.stop());
  const machineNodes = new MachineNodes({
    cluster: far,
    management: scene.cluster.client,
    name: FAR,
    log,
  });
  started.defer(async () => await machineNodes.stop());
  const [controlPlane] = CONTROL_PLANE_VERSIONS;
  const direct = await readFile(await plane.kubeconfig('admin'), 'utf8');
  const kubeconfig = direct.replaceAll(String(plane.port), String(proxy.port));
  const versions = { controlPlane, workers: BEFORE };
  await scene.apply(
    ...clusterObjects({ name: FAR, controlPlanes: 1, workers: 1, versions, kubeconfig }),
  );
  await scene.settled('workers', BEFORE, 1, FAR);
  return { far, proxy };
}

async function identityOfWorker(
  scene: Scene,
  far: Cluster,
): Promise<{ uid: string; node: string; nodeUid: string }> {
  const [machine] = await scene.machines('workers', FAR);
  const node = machine?.status?.nodeRef?.name ?? '';
  const { metadata } = await far.client.get(nodes, node);
  return { uid: machine?.metadata.uid ?? '', node, nodeUid: metadata.uid ?? '' };
}
