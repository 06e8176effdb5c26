/**
 * Tests a second cluster in the same namespace that has its Nodes elsewhere. Refit does not touch a Node of the first
 * cluster with the same name.
 */
import { createNode } from '../../../../sandbox/cluster/objects.ts';
import { NODE_ANNOTATIONS } from '../../../../src/api/capi/machine.ts';
import { nodes } from '../../../../src/kube/resources.ts';
import { AGENT_ANNOTATION } from '../../../../src/signal/names.ts';
import { CLUSTER, clusterObjects, NAMESPACE } from '../machines/objects.ts';
import { conditionOf } from '../machines/settled.ts';
import { CONTROL_PLANE_VERSIONS, type Scene } from '../scene.ts';
import { wantWorkers } from './update.ts';

const OTHER = 'elsewhere';
const FAILED_CALLS = 2;

export async function secondCluster(scene: Scene): Promise<void> {
  const { checks, cluster } = scene;
  const versions = { controlPlane: CONTROL_PLANE_VERSIONS[0], workers: 'v1.36.0+k0s.0' };
  await scene.apply(...clusterObjects({ name: OTHER, controlPlanes: 1, workers: 1, versions }));
  await scene.until('a worker of the second cluster', async () =>
    (await scene.machines('workers', OTHER)).some(({ status }) => status?.nodeRef !== undefined),
  );
  const before = await scene.identities('workers');
  const [machine] = await scene.machines('workers', OTHER);
  const name = machine?.status?.nodeRef?.name ?? '';
  const [worker = ''] = before.keys();
  const { metadata: real } = await cluster.client.get(nodes, worker);
  const identity = {
    [NODE_ANNOTATIONS.cluster]: CLUSTER,
    [NODE_ANNOTATIONS.namespace]: NAMESPACE,
    // Without an agent Refit would not even accept the update.
    [AGENT_ANNOTATION]: real.annotations?.[AGENT_ANNOTATION],
  };
  await createNode(cluster.client, name, {});
  await cluster.client.patch(
    nodes,
    name,
    { metadata: { annotations: identity } },
    { type: 'merge' },
  );
  await checks.check(
    'a Machine of the second cluster: the Node of the first one with its name is not touched',
    async () => {
      await wantWorkers(scene, { version: 'v1.36.1+k0s.0' }, `${OTHER}-workers`);
      await scene.failedCalls('core', 'UpdateMachine', FAILED_CALLS);
      const { metadata, spec } = await cluster.client.get(nodes, name);
      const written = Object.keys(metadata.annotations ?? {}).filter(
        (key) => key.startsWith('upgrade.refit.dev/') && key !== AGENT_ANNOTATION,
      );
      const [now] = await scene.machines('workers', OTHER);
      return [
        ...(written.length === 0 ? [] : [`the Node of another Machine has ${written.join(', ')}`]),
        ...(spec?.unschedulable === true ? ['the Node of another Machine is cordoned'] : []),
        ...(now?.metadata.uid === machine?.metadata.uid ? [] : ['the Machine was replaced']),
      ];
    },
  );
  const updating = conditionOf(
    (await scene.machines('workers', OTHER))[0] ?? { metadata: { name } },
    'Updating',
  );
  scene.options.log(`  its condition Updating: ${updating?.message?.trim()}`);
  checks.gap(
    'Machines of two clusters in place',
    'this extension is for one cluster: it accepts the Machine of the other one by the name of its Node, and then fails; the part workload-clusters has both in place, with --workload-clusters',
  );
  const version = scene.nextVersion();
  await checks.check('the first cluster is updated in place beside it', async () => {
    await wantWorkers(scene, { version });
    await scene.settled('workers', version);
    return await scene.wrongAfter('workers', version, before);
  });
}
