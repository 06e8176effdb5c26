/** Upgrades a cluster by Refit, and by k0s alone, beside each other, and compares their times. */
import { type Figures, figuresOf, median, timelineOf } from '../observe/figures.ts';
import { upgradeAndCheck } from '../outcome.ts';
import { calm } from '../plan.ts';
import { Refit } from '../refit.ts';
import type { Scene } from '../scene.ts';

interface Way {
  readonly title: string;
  /** The flags of Refit's agents. They are absent if k0s upgrades the cluster alone. */
  readonly agents?: object;
}

const WAYS: readonly Way[] = [
  { title: 'Refit', agents: {} },
  { title: 'k0s alone' },
  { title: 'Refit with soak 0s', agents: { soak: '0s' } },
];

export async function compareUpgrades(scene: Scene): Promise<void> {
  const { cluster, checks, from, pairs, log } = scene;
  await checks.check(
    `a cluster of ${from.version} is there`,
    async () => await cluster.unsettled(from.version),
  );
  const refit = new Refit(cluster, scene.refit);
  await refit.install();
  const all = new Map<string, Figures[]>();
  for (let pair = 1; pair <= pairs; pair++)
    for (const way of WAYS) {
      const title = pairs > 1 ? `${way.title}, ${pair}` : way.title;
      const figures = await upgradeOnce(scene, refit, way, title);
      if (figures === undefined) continue;
      all.set(way.title, [...(all.get(way.title) ?? []), figures]);
      log(`${title}: ${describe(figures)}`);
    }
  report(all, log);
}

async function upgradeOnce(
  scene: Scene,
  refit: Refit,
  way: Way,
  title: string,
): Promise<Figures | undefined> {
  const { cluster, checks, from, to, log } = scene;
  const byRefit = way.agents !== undefined;
  await refit.stop();
  await cluster.reset(from, byRefit ? 'off' : 'on');
  if (way.agents !== undefined) {
    await refit.startControllers();
    await refit.startAgents(cluster.machines, way.agents);
  }
  log(`${title}: begins`);
  await calm();
  const writes = await upgradeAndCheck(scene, title, to.version);
  let figures: Figures | undefined;
  await checks.check(`${title}: the audit logs show how long it took`, () => {
    const names = cluster.machines.map(({ name }) => name);
    figures = figuresOf(writes, names);
    for (const line of timelineOf(writes, names)) log(`${title}: ${line}`);
    return [];
  });
  return figures;
}

const describe = ({ seconds, gap, restart, writesPerNode }: Figures): string =>
  `${seconds.toFixed(1)} s in all, ${gap.toFixed(2)} s between nodes, ${restart.toFixed(1)} s from Restart to UnCordoning of a controller, ${writesPerNode.toFixed(1)} writes a node`;

function report(all: ReadonlyMap<string, readonly Figures[]>, log: (line: string) => void): void {
  const alone = median((all.get('k0s alone') ?? []).map(({ seconds }) => seconds));
  for (const [title, figures] of all) {
    const seconds = median(figures.map((each) => each.seconds));
    log(`${title}: median ${seconds.toFixed(1)} s, ${(seconds / alone).toFixed(3)} of k0s alone`);
  }
}
