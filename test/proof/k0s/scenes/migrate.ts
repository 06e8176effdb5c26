/** Moves a cluster from k0s's own autopilot to Refit and back, in the order of the guide, with an upgrade on either side. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Machine } from '../../machines/machine.ts';
import { until } from '../../wait.ts';
import { AUTOPILOT_OFF, type OwnAgents, startK0s } from '../cluster/cluster.ts';
import { FLAGS } from '../cluster/furnish.ts';
import { upgradeAndCheck } from '../outcome.ts';
import { Refit } from '../refit.ts';
import type { Scene } from '../scene.ts';

export async function migrate(scene: Scene): Promise<void> {
  const { cluster, checks, from, to } = scene;
  const refit = new Refit(cluster, scene.refit);
  await checks.check(
    'before the migration, --check blocks nothing, is not done, and names the leader',
    async () => {
      const { ok, stdout, stderr } = await refit.command('migrate', 'k0s', '--check');
      const leader = (await cluster.leader())?.name;
      return ok &&
        stdout.includes('Nothing blocks the migration') &&
        stdout.includes(`leader: k0s on ${leader} `)
        ? []
        : [stdout + stderr];
    },
  );
  await refit.install();
  await refit.beginControllers();
  await notDone(scene, refit, "while k0s's own leader holds the Lease");
  // A worker that is restarted while controllers still run k0s's own agent starts its own agent again.
  await restartTooEarly(scene, refit);
  await moveControllers(scene, refit);
  await checks.check('Refit leads after the last controller', async () => {
    await until('Refit to lead', 120, async () => await refit.leads());
    return [];
  });
  await moveWorkers(scene, refit);
  await checks.check('--check is done after the last worker', async () => await isDone(refit));
  await upgradeAndCheck(scene, 'after the migration', to.version);
  await checks.check('--check is still done after the upgrade', async () => await isDone(refit));
  await goBack(scene, refit);
  // k0s's own leader has no rule against a downgrade.
  await cluster.kubectl('delete', 'plans.autopilot.k0sproject.io', 'autopilot');
  const writes = await upgradeAndCheck(scene, 'after the way back, by k0s', from.version);
  await checks.check('after the way back, nothing of Refit wrote anything', () => {
    const found = writes.filter(({ by, agent }) => by.startsWith('refit') || /refit/i.test(agent));
    return [...new Set(found.map(({ by, resource }) => `${by} wrote ${resource}`))];
  });
}

/** Carries out step 2 of the guide: each controller, one at a time. */
async function moveControllers(scene: Scene, refit: Refit): Promise<void> {
  const { cluster } = scene;
  for (const machine of cluster.controllers) {
    await restart(scene, machine, 'off');
    await refit.startAgents([machine]);
    await notDone(scene, refit, `after ${machine.name}`);
  }
}

async function restartTooEarly(scene: Scene, refit: Refit): Promise<void> {
  const [early] = scene.cluster.workers;
  if (early === undefined) return;
  await restart(scene, early, 'on');
  await refit.startAgents([early]);
  await notDone(scene, refit, `after ${early.name}, which was restarted too early`);
}

/** Carries out steps 3 and 4 of the guide. */
async function moveWorkers(scene: Scene, refit: Refit): Promise<void> {
  const { cluster, checks } = scene;
  await checks.check(
    'the command of --plan waits until the worker profiles are rewritten',
    async () => {
      const { stdout } = await refit.command('migrate', 'k0s', '--plan');
      const commands = stdout.match(/kubectl .*wait configmap.*$/gm) ?? [];
      for (const command of commands) {
        const words = command.replaceAll("'", '').split(' ').slice(1);
        const { ok, stderr } = await cluster.kubectl(...words);
        if (!ok) return [`${command}: ${stderr}`];
      }
      const profiles = await cluster.profiles();
      return commands.length > 0 && !profiles.includes(false) ? [] : [stdout];
    },
  );
  await notDone(scene, refit, 'when the worker profiles are rewritten');
  for (const machine of cluster.workers) {
    await restart(scene, machine, 'on');
    await refit.startAgents([machine]);
    if (machine !== cluster.workers.at(-1)) await notDone(scene, refit, `after ${machine.name}`);
  }
}

/** Carries out the steps of "Go back". */
async function goBack(scene: Scene, refit: Refit): Promise<void> {
  const { cluster, checks } = scene;
  await refit.stop();
  for (const machine of cluster.controllers) await restart(scene, machine, 'on');
  await checks.check(
    'after the way back, k0s leads and its profiles leave its agents on',
    async () => {
      await until('k0s to lead', 180, async () => (await cluster.leader()) !== undefined);
      await until(
        'the worker profiles',
        180,
        async () => !(await cluster.profiles()).includes(true),
      );
      return [];
    },
  );
  for (const machine of cluster.workers) await restart(scene, machine, 'on');
  for (const kind of ['nodes', 'controlnodes'])
    await cluster.kubectl('annotate', kind, '--all', 'upgrade.refit.dev/agent-');
  await notDone(scene, refit, 'after the way back');
}

/** Restarts k0s as an administrator does. On a controller, k0s's own agent is on or off from then on. */
async function restart({ cluster }: Scene, machine: Machine, agents: OwnAgents): Promise<void> {
  const isController = cluster.controllers.includes(machine);
  if (isController)
    await writeFile(join(machine.root, FLAGS), agents === 'off' ? AUTOPILOT_OFF : '\n');
  await machine.must('systemctl stop k0s');
  await startK0s(machine);
  if (isController) await cluster.isReady(machine);
  else
    await until(
      `k0s on ${machine.name} to answer`,
      180,
      async () => (await machine.run('k0s status')).ok,
    );
}

/** `--check` must not say that the migration is done. It exits with 1 as soon as every host has Refit's agent. */
async function notDone({ checks }: Scene, refit: Refit, when: string): Promise<void> {
  await checks.check(`--check is not done ${when}`, async () => {
    const { stdout, stderr } = await refit.command('migrate', 'k0s', '--check');
    return /^Done/m.test(stdout) || stdout === '' ? [stdout + stderr] : [];
  });
}

/** An agent announces itself within seconds, so this waits for a moment. */
async function isDone(refit: Refit): Promise<string[]> {
  let said = '';
  await until('--check to say Done', 60, async () => {
    const { ok, stdout, stderr } = await refit.command('migrate', 'k0s', '--check');
    said = stdout + stderr;
    return ok && /^Done/m.test(stdout);
  }).catch(() => undefined);
  return /^Done/m.test(said) ? [] : [said];
}
