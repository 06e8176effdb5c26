/** What every upgrade must have done, whoever carried it out. */
import { type AuditedWrite, AuditLogs } from './observe/audit.ts';
import { signalOrder } from './observe/figures.ts';
import { type Watched, watchHosts } from './observe/hosts.ts';
import { type PlanOptions, planFor, untilState } from './plan.ts';
import type { Scene } from './scene.ts';

/** The states in which a Plan does nothing more. */
export const ENDED = [
  'Completed',
  'ApplyFailed',
  'IncompleteTargets',
  'InconsistentTargets',
  'Restricted',
  'Warning',
] as const;

export interface UpgradeOptions extends PlanOptions {
  /** Called when the Plan was created, while it runs. */
  readonly meanwhile?: () => Promise<void>;
  /** How often the binary of each host is replaced. */
  readonly swaps?: number;
  readonly seconds?: number;
}

/** Runs a Plan to its end, and checks the result. Returns everything that was written meanwhile. */
export async function upgradeAndCheck(
  scene: Scene,
  title: string,
  version: string,
  options: UpgradeOptions = {},
): Promise<readonly AuditedWrite[]> {
  const { cluster, checks } = scene;
  const { concurrent = 1, meanwhile, swaps = 1, seconds = 600 } = options;
  const audit = new AuditLogs(cluster.controllers);
  await using watched = watchHosts(cluster, concurrent);
  await checks.check(`${title}: the Plan ends as Completed`, async () => {
    await cluster.apply(planFor(scene, version, options));
    await meanwhile?.();
    const state = await untilState(scene, ENDED, seconds);
    return state === 'Completed' ? [] : [`it ended as ${state}`, ...(await whyOf(scene))];
  });
  await checks.check(
    `${title}: every host runs ${version}, and nothing is left behind`,
    async () => {
      await cluster.settled(version);
      return await cluster.left();
    },
  );
  await checks.check(`${title}: controllers first, one at a time, each binary swapped once`, () => [
    ...watched.violations,
    ...outOfOrder(
      audit.writes(),
      cluster.machines.map(({ name }) => name),
    ),
    ...unexpectedSwaps(scene, watched, swaps),
  ]);
  return audit.writes();
}

/** Returns what is wrong with the order of the signals: controllers come first, then workers. */
export function outOfOrder(writes: readonly AuditedWrite[], names: readonly string[]): string[] {
  const order = signalOrder(writes, names);
  return [
    ...unsignalled(order, names),
    ...(/w.*c/.test(order.join(' ')) ? [`the order was ${order.join(', ')}`] : []),
  ];
}

/** Returns which nodes have no signal in the audit logs. Without a signal of each node, the logs say nothing about the order. */
export function unsignalled(order: readonly string[], names: readonly string[]): string[] {
  return names
    .filter((name) => !order.includes(name))
    .map((name) => `the audit logs hold no signal of ${name}`);
}

function unexpectedSwaps({ cluster }: Scene, { swaps }: Watched, expected: number): string[] {
  return cluster.machines.flatMap(({ name }) =>
    (swaps[name] ?? 0) === expected
      ? []
      : [`the binary of ${name} was swapped ${swaps[name] ?? 0} times`],
  );
}

/** Resolves with what the Plan says about its commands, for a failed check. */
async function whyOf({ cluster }: Scene): Promise<string[]> {
  const { stdout } = await cluster.kubectl(
    'get',
    'plans.autopilot.k0sproject.io',
    'autopilot',
    '-o',
    'jsonpath={.status}',
  );
  return [stdout.slice(0, 2000)];
}
