/** Tests a node without its agent: the Machine waits and says why, and continues when the agent is back. */
import { nodes } from '../../../../src/kube/resources.ts';
import { AGENT_ANNOTATION, HEARTBEAT_ANNOTATION } from '../../../../src/signal/names.ts';
import { rfc3339, systemClock } from '../../../../src/util/clock.ts';
import { conditionOf } from '../machines/settled.ts';
import type { Identity, Scene } from '../scene.ts';
import { versionOfWorkers } from './uncovered.ts';
import { wantWorkers } from './update.ts';

const FAILED_CALLS = 2;

export async function agentGone(scene: Scene): Promise<void> {
  const { checks, cluster, machineNodes } = scene;
  const before = await scene.identities('workers');
  const current = await versionOfWorkers(scene);
  for (const name of before.keys()) await cluster.agents.get(name)?.stop();
  const version = scene.nextVersion();
  await checks.check(
    'workers without agents: no service is touched, and a Machine says what it waits for',
    async () => {
      await wantWorkers(scene, { version });
      let message = '';
      await scene.until('a Machine that tells of its agent', async () => {
        const messages = (await scene.machines('workers')).map(
          (machine) => conditionOf(machine, 'Updating')?.message,
        );
        message = messages.find((each) => each?.includes('agent')) ?? '';
        return message !== '';
      });
      scene.options.log(`  its condition Updating: ${message.trim()}`);
      return await scene.wrongAfter('workers', current, before);
    },
  );
  await checks.check('the agents are back: both workers end in place', async () => {
    for (const name of before.keys()) await cluster.startAgent(machineNodes.host(name));
    await scene.settled('workers', version);
    return await scene.wrongAfter('workers', version, before);
  });
  await silentAgents(scene, before, version);
}

/** Tests agents whose last heartbeat was an hour ago. */
async function silentAgents(
  scene: Scene,
  before: ReadonlyMap<string, Identity>,
  current: string,
): Promise<void> {
  const { checks, cluster, machineNodes } = scene;
  const version = scene.nextVersion();
  const [since, at] = [7_200_000, 3_600_000].map((ago) => rfc3339(systemClock.now() - ago));
  await checks.check(
    'agents that have been silent for an hour: nothing is claimed, and nothing replaced',
    async () => {
      for (const [name, { node }] of before) {
        await cluster.agents.get(name)?.stop();
        const annotations = {
          [AGENT_ANNOTATION]: JSON.stringify({ version: '1.0.0', since }),
          [HEARTBEAT_ANNOTATION]: JSON.stringify({ at, since }),
        };
        await cluster.client.patch(nodes, node, { metadata: { annotations } }, { type: 'merge' });
      }
      await wantWorkers(scene, { version });
      await scene.failedCalls('core', 'CanUpdateMachineSet', FAILED_CALLS);
      return await scene.wrongAfter('workers', current, before);
    },
  );
  await checks.check('they are heard again: both workers end in place', async () => {
    for (const name of before.keys()) await cluster.startAgent(machineNodes.host(name));
    await scene.settled('workers', version);
    return await scene.wrongAfter('workers', version, before);
  });
}
