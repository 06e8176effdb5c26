/** Leader and agents of either product, in all the ways in which the guide allows them beside each other. */

import { systemClock } from '../../../../src/util/clock.ts';
import { until } from '../../wait.ts';
import { startK0s } from '../cluster/cluster.ts';
import { type AuditedWrite, statusIn } from '../observe/audit.ts';
import { upgradeAndCheck } from '../outcome.ts';
import { Refit } from '../refit.ts';
import type { Scene } from '../scene.ts';

/** On a busy machine, each of the three controllers of k0s may get the Lease several times before Refit does. */
const LEASE_MS = 20 * 60_000;

interface Mixture {
  readonly title: string;
  readonly leader: 'Refit' | 'k0s';
  /** The flags of Refit's agents. They are absent if only k0s's own agents run. */
  readonly agents?: object;
  /** Who must have replaced the binaries. */
  readonly worker: 'k0s' | 'either';
  /** True if a host must have downloaded the release before its turn. */
  readonly fetchesAhead?: true;
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
    fetchesAhead: true,
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
  for (const { title, leader, agents, worker, fetchesAhead } of MIXTURES) {
    await refit.stop();
    await cluster.reset(from, 'on');
    if (agents !== undefined) await refit.startAgents(cluster.machines, agents);
    if (leader === 'Refit') await takeTheLease(scene, refit);
    log(`${title}: begins`);
    const since = systemClock.now();
    const writes = await upgradeAndCheck(scene, title, to.version);
    await checks.check(`${title}: ${leader} sent the first signal`, () => ledBy(writes, leader));
    if (worker === 'k0s')
      await checks.check(`${title}: no agent of Refit did the work of a host`, () =>
        workedByK0s(writes, scene),
      );
    if (fetchesAhead === true)
      await checks.check(`${title}: hosts downloaded the release before their turn`, () =>
        fetchedAhead(writes, scene, since),
      );
  }
  await refit.stop();
}

/** As the guide says: restart the k0s controller that holds the Lease, until Refit holds it. */
async function takeTheLease({ cluster }: Scene, refit: Refit): Promise<void> {
  await refit.beginControllers();
  const end = systemClock.monotonic() + LEASE_MS;
  while (systemClock.monotonic() < end) {
    await until('somebody to lead', 180, async () => (await cluster.holder()) !== '');
    if (await refit.leads()) return;
    const holder = await cluster.leader();
    if (holder === undefined) continue;
    await holder.must('systemctl stop k0s');
    await startK0s(holder);
    await cluster.isReady(holder);
  }
  throw new Error(`Refit did not get the Lease within ${LEASE_MS / 60_000} minutes`);
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

/** The agent that replaces the binary of a host writes the status `Restart`. */
function workedByK0s(writes: readonly AuditedWrite[], { cluster }: Scene): string[] {
  return cluster.machines.flatMap(({ name }) => {
    const restart = writes.find((write) => write.name === name && statusIn(write) === 'Restart');
    if (restart === undefined) return [`no agent restarted ${name}`];
    return restart.agent.startsWith('refit-agent/') ? [`${restart.agent} restarted ${name}`] : [];
  });
}

/** At least one host must have downloaded the release before the leader signalled it. */
function fetchedAhead(
  writes: readonly AuditedWrite[],
  { cluster, mirror, to }: Scene,
  since: number,
): string[] {
  const early = cluster.machines.filter(({ name, address }) => {
    const signalled = writes.find(
      (write) => write.name === name && statusIn(write) === 'Signalled',
    );
    const fetched = mirror.firstDownload(address, to.version, since);
    return signalled !== undefined && fetched !== undefined && fetched < signalled.at;
  });
  return early.length > 0 ? [] : ['every host downloaded the release after its signal'];
}
