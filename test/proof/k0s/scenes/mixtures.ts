/** Leader and agents of either product, in all the ways in which the guide allows them beside each other. */

import { until } from '../../wait.ts';
import { startK0s } from '../cluster/cluster.ts';
import { type AuditedWrite, statusIn } from '../observe/audit.ts';
import { upgradeAndCheck } from '../outcome.ts';
import { Refit } from '../refit.ts';
import type { Scene } from '../scene.ts';

/** Five processes want the Lease, and two of them are Refit. */
const MOST_RESTARTS = 12;

interface Mixture {
  readonly title: string;
  readonly leader: 'Refit' | 'k0s';
  /** The flags of Refit's agents. They are absent if only k0s's own agents run. */
  readonly agents?: object;
  /** Who must have replaced the binaries. */
  readonly worker: 'Refit' | 'k0s' | 'either';
}

const MIXTURES: readonly Mixture[] = [
  { title: "Refit leads k0s's own agents", leader: 'Refit', worker: 'k0s' },
  {
    title: "Refit leads, its agents stand aside for k0s's own",
    leader: 'Refit',
    agents: {},
    worker: 'k0s',
  },
  {
    title: 'Refit leads, both agents act, downloads are fetched ahead',
    leader: 'Refit',
    agents: { 'beside-k0s': 'replace' },
    worker: 'either',
  },
  {
    title: 'k0s leads, both agents act',
    leader: 'k0s',
    agents: { 'beside-k0s': 'replace' },
    worker: 'either',
  },
];

export async function mix(scene: Scene): Promise<void> {
  const { cluster, checks, from, to, log } = scene;
  const refit = new Refit(cluster, scene.refit);
  await refit.install();
  for (const { title, leader, agents } of MIXTURES) {
    await refit.stop();
    await cluster.reset(from, 'on');
    if (agents !== undefined) await refit.startAgents(cluster.machines, agents);
    if (leader === 'Refit') await takeTheLease(scene, refit);
    log(`${title}: begins`);
    const writes = await upgradeAndCheck(scene, title, to.version);
    await checks.check(`${title}: ${leader} sent the first signal`, () => ledBy(writes, leader));
  }
  await refit.stop();
}

/** As the guide says: restart the k0s controller that holds the Lease, until Refit holds it. */
async function takeTheLease({ cluster }: Scene, refit: Refit): Promise<void> {
  await refit.startControllers(false);
  for (let restarts = 0; restarts < MOST_RESTARTS; restarts++) {
    await until('somebody to lead', 180, async () => (await cluster.holder()) !== '');
    if (await refit.leads()) return;
    const holder = await cluster.leader();
    if (holder === undefined) continue;
    await holder.must('systemctl stop k0s');
    await startK0s(holder);
    await cluster.isReady(holder);
  }
  throw new Error(`Refit did not get the Lease after ${MOST_RESTARTS} restarts of k0s`);
}

/**
 * The first signal must have been sent by the leader that the mixture names. Later the other product may get the Lease,
 * because the leader does not reach the API server for a while.
 */
function ledBy(writes: readonly AuditedWrite[], leader: Mixture['leader']): string[] {
  const first = writes.find((write) => statusIn(write) === 'Signalled');
  if (first === undefined) return ['nobody sent a signal'];
  return (first.by === 'refit-controller') === (leader === 'Refit')
    ? []
    : [`${first.by} sent the first signal`];
}
