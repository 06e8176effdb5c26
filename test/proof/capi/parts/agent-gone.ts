/** A node without its agent: the Machine waits and says why, and goes on when the agent is back. */
import { conditionOf } from '../machines/settled.ts';
import type { Scene } from '../scene.ts';
import { versionOfWorkers } from './uncovered.ts';
import { wantWorkers } from './update.ts';

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
        const messages = (await scene.machines('workers')).map((machine) => conditionOf(machine, 'Updating')?.message);
        message = messages.find((each) => each?.includes('agent')) ?? '';
        return message !== '';
      });
      scene.options.log(`  its condition Updating: ${message.trim()}`);
      return await scene.wrongAfter('workers', current, before);
    },
  );
  checks.gap(
    'CanUpdate without a running agent is answered No',
    'an agent that ended counts as there: its annotation stays on the Node',
  );
  await checks.check('the agents are back: both workers end in place', async () => {
    for (const name of before.keys()) await cluster.startAgent(machineNodes.host(name));
    await scene.settled('workers', version);
    return await scene.wrongAfter('workers', version, before);
  });
}
