/**
 * Tests what others do in the middle of an update: Machines are deleted, a marker is removed, or an agent starts late.
 */
import { nodes } from '../../../../src/kube/resources.ts';
import { AGENT_ANNOTATION } from '../../../../src/signal/names.ts';
import { capiMachines, NAMESPACE } from '../machines/objects.ts';
import { conditionOf, IN_PROGRESS } from '../machines/settled.ts';
import type { Scene } from '../scene.ts';
import { held, release } from './failed-update.ts';
import { scaled } from './sizes.ts';
import { versionOfWorkers } from './uncovered.ts';
import { wantWorkers } from './update.ts';

const IN_TURN = { maxSurge: 0, maxUnavailable: 1 };
const FAILED_CALLS = 2;

export async function interfered(scene: Scene): Promise<void> {
  await scaledMidway(scene);
  await markerRemoved(scene);
  await lateAgent(scene);
}

async function scaledMidway(scene: Scene): Promise<void> {
  await scaled(scene, 3, IN_TURN);
  for (const [more, fewer] of [
    [3, 2],
    [2, 1],
  ] as const) {
    const before = await scene.identities('workers');
    const version = scene.nextVersion();
    await held(scene, version);
    await scene.checks.check(
      `${more} Machines become ${fewer} while one is updated: the rest ends in place`,
      async () => {
        await scaled(scene, fewer, IN_TURN, version, async () => await release(scene));
        const after = await scene.identities('workers');
        const kept = new Map([...before].filter(([name]) => after.has(name)));
        const wrong = await scene.wrongAfter('workers', version, kept);
        return kept.size === fewer ? wrong : [`${kept.size} are kept`, ...wrong];
      },
    );
  }
  await scaled(scene, 2, IN_TURN);
}

/** Removes the marker of an update. Cluster API then counts the Machine as updated, and calls no extension for it. */
async function markerRemoved(scene: Scene): Promise<void> {
  const before = await scene.identities('workers');
  const version = scene.nextVersion();
  const { metadata } = await held(scene, version);
  await scene.checks.check(
    'the marker of an update is removed: the node ends at its version all the same',
    async () => {
      const annotations = { [IN_PROGRESS]: null, 'runtime.cluster.x-k8s.io/pending-hooks': null };
      const options = { type: 'merge', namespace: NAMESPACE } as const;
      await scene.cluster.client.patch(
        capiMachines,
        metadata.name,
        { metadata: { annotations } },
        options,
      );
      await scene.until('no update by Cluster API', async () => {
        const machine = await scene.cluster.client.get(capiMachines, metadata.name, {
          namespace: NAMESPACE,
        });
        return conditionOf(machine, 'Updating')?.status !== 'True';
      });
      await release(scene);
      await scene.settled('workers', version);
      return await scene.wrongAfter('workers', version, before);
    },
  );
}

/**
 * Tests an agent that starts late. Cluster API keeps a negative answer for a day, and replaces all Machines. Refit
 * therefore gives no such answer for a node that may have an agent soon.
 */
async function lateAgent(scene: Scene): Promise<void> {
  const { checks, cluster, machineNodes } = scene;
  const known = await scene.identities('workers');
  await scaled(scene, 3, IN_TURN);
  const before = await scene.identities('workers');
  const name = [...before.keys()].find((each) => !known.has(each)) ?? '';
  await cluster.agents.get(name)?.stop();
  const node = await cluster.client.get(nodes, name);
  const { [AGENT_ANNOTATION]: _, ...annotations } = node.metadata.annotations ?? {};
  await cluster.client.replace(nodes, { ...node, metadata: { ...node.metadata, annotations } });
  const current = await versionOfWorkers(scene);
  const version = scene.nextVersion();
  await checks.check(
    'a node whose agent is not there yet: no Machine is replaced, and no answer is kept',
    async () => {
      await wantWorkers(scene, { version });
      await scene.failedCalls('core', 'CanUpdateMachineSet', FAILED_CALLS);
      return await scene.wrongAfter('workers', current, before);
    },
  );
  await checks.check('the agent is there: all three workers end in place', async () => {
    await cluster.startAgent(machineNodes.host(name));
    await scene.settled('workers', version, 3);
    return await scene.wrongAfter('workers', version, before);
  });
  await scaled(scene, 2, IN_TURN);
}
