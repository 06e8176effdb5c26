/** Fifty upgrades in a row, to and fro, with random faults: nothing may grow, and no rule may break. */
import { randomInt } from 'node:crypto';
import { sleep, systemClock } from '../../../../src/util/clock.ts';
import { median } from '../observe/figures.ts';
import { watchHosts } from '../observe/hosts.ts';
import { keptIn, type ProcessUsage, processesOf } from '../observe/usage.ts';
import { ENDED } from '../outcome.ts';
import { planFor, stateOf } from '../plan.ts';
import { Refit } from '../refit.ts';
import type { Scene } from '../scene.ts';

const UPGRADES = 50;
/** The memory of the last upgrades is compared with that of these, when every path was used once. */
const EARLY = [5, 15] as const;
const LAST = 10;
/** What is kept after the last upgrade is compared with this one. Both go to the same version. */
const EARLY_KEPT = 8;
const MAY_GROW = 1.05;
/** Kept connections come and go. A connection that stays open after each upgrade would be ten times as many. */
const SPARE_SOCKETS = 3;
const CONCURRENT = 3;
/** The processes on these hosts are never killed, so that their memory can be compared. */
const SPARED = ['c1', 'w1'];
/** The processes that must have lived all the time. */
const LASTING = ['refit-controller on c1', 'refit-agent on c1', 'refit-agent on w1'];

interface Round {
  readonly processes: readonly ProcessUsage[];
  readonly kept: Readonly<Record<string, number>>;
}

export async function upgradeForLong(scene: Scene): Promise<void> {
  const { cluster, checks, to, later, log } = scene;
  const [next] = later;
  if (next === undefined) throw new Error('this scene needs another release');
  const refit = new Refit(cluster, scene.refit);
  await refit.install();
  await cluster.reset(to, 'off');
  await refit.startControllers();
  await refit.startAgents(cluster.machines, { soak: '0s' });
  await cluster.apply({
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: 'to-and-fro' },
    spec: { versions: { allow: ['Downgrade'] } },
  });
  const rounds: Round[] = [];
  await using watched = watchHosts(cluster, CONCURRENT);
  for (let number = 1; number <= UPGRADES; number++) {
    const { version } = number % 2 === 1 ? next : to;
    const started = systemClock.monotonic();
    await checks.check(`upgrade ${number} of ${UPGRADES} ends as Completed`, async () => {
      const state = await upgradeWithFaults(scene, version, number);
      if (state !== 'Completed') return [`the plan is ${state}`];
      await cluster.settled(version);
      return await cluster.left();
    });
    rounds.push({ processes: processesOf(cluster), kept: await keptIn(cluster) });
    const seconds = Math.round((systemClock.monotonic() - started) / 1000);
    log(`upgrade ${number}: ${seconds} s, ${describe(rounds.at(-1)?.processes ?? [])}`);
  }
  await checks.check('no rule was broken in any upgrade', () => watched.violations);
  await checks.check(
    'the memory, the open files and the connections of no process have grown',
    () => grownIn(rounds),
  );
  await checks.check('objects, annotations and kept files are as many as before', () =>
    keptMore(rounds),
  );
  await refit.stop();
}

async function upgradeWithFaults(scene: Scene, version: string, number: number): Promise<string> {
  const { cluster } = scene;
  await cluster.kubectl(
    'delete',
    'plans.autopilot.k0sproject.io',
    'autopilot',
    '--ignore-not-found',
  );
  await cluster.apply(planFor(scene, version, { id: `long-${number}`, concurrent: CONCURRENT }));
  const ended = systemClock.monotonic() + 600_000;
  let state = '';
  while (systemClock.monotonic() < ended) {
    state = await stateOf(scene);
    if (ENDED.some((each) => each === state)) return state;
    await sleep(systemClock, randomInt(1000, 4000));
    if (randomInt(8) === 0) await killOne(scene);
  }
  return state;
}

/** Kills a process of Refit that is not spared. */
async function killOne({ cluster }: Scene): Promise<void> {
  const service = randomInt(3) === 0 ? 'refit-controller' : 'refit-agent';
  const among = cluster.machines.filter(({ name }) => !SPARED.includes(name));
  await among[randomInt(among.length)]?.run(`kill -9 "$(cat /run/services/${service}.pid)"`);
}

/** Compares only processes that lived all the time. */
function grownIn(rounds: readonly Round[]): string[] {
  const late = rounds.slice(-LAST);
  const early = rounds.slice(...EARLY);
  const lasting = (late.at(-1)?.processes ?? []).filter(({ name, pid }) =>
    early.every(({ processes }) =>
      processes.some((each) => each.name === name && each.pid === pid),
    ),
  );
  const ended = LASTING.filter((name) => lasting.every((each) => each.name !== name));
  const grown = lasting.flatMap(({ name }) => {
    /** Returns the medians of the early and of the late upgrades. */
    const medians = (read: (usage: ProcessUsage) => number): readonly [number, number] => {
      const of = (some: readonly Round[]): number =>
        median(
          some.flatMap(({ processes }) => processes.filter((each) => each.name === name).map(read)),
        );
      return [of(early), of(late)];
    };
    const memory = medians(({ residentKiB }) => residentKiB);
    const files = medians(({ openFiles }) => openFiles);
    const sockets = medians((usage) => usage.sockets);
    return [
      ...(memory[1] <= memory[0] * MAY_GROW
        ? []
        : [`${name} had ${memory[0]} KiB of memory, and then ${memory[1]} KiB`]),
      ...(files[1] <= files[0] ? [] : [`${name} had ${files[0]} open files, and then ${files[1]}`]),
      ...(sockets[1] <= sockets[0] + SPARE_SOCKETS
        ? []
        : [`${name} had ${sockets[0]} connections, and then ${sockets[1]}`]),
    ];
  });
  return [...ended.map((name) => `${name} was started anew`), ...grown];
}

/** Compares the last upgrade with an early one to the same version. */
function keptMore(rounds: readonly Round[]): string[] {
  const before = rounds[EARLY_KEPT - 1];
  const after = rounds.at(-1);
  if (before === undefined || after === undefined) return ['too few upgrades ran'];
  return Object.entries(after.kept).flatMap(([name, count]) =>
    count <= (before.kept[name] ?? 0)
      ? []
      : [`${name}: ${before.kept[name] ?? 0}, and then ${count}`],
  );
}

const describe = (processes: readonly ProcessUsage[]): string =>
  processes
    .map(
      ({ name, residentKiB, openFiles, sockets }) =>
        `${name.replace('refit-', '')} ${Math.round(residentKiB / 1024)} MiB ${openFiles}+${sockets} open`,
    )
    .join(', ');
