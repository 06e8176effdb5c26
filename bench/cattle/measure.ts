/**
 * Measures Plans of system-upgrade-controller. Between the Plans, it measures how long the same server needs if a loop
 * creates bare Jobs.
 */
import { readFile } from 'node:fs/promises';
import { cattlePlans } from '../../src/api/kinds.ts';
import { DEFAULT_JOB_SETTINGS } from '../../src/dialects/cattle/plan/config.ts';
import { jobOf } from '../../src/dialects/cattle/plan/job.ts';
import { type Job, jobs, type Node, pods } from '../../src/kube/resources.ts';
import { ifFound } from '../../src/kube/status-error.ts';
import { boundedClient } from '../../src/kube/transport/bounded-client.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import { type Clock, sleep } from '../../src/util/clock.ts';
import { RefitError } from '../../src/util/errors.ts';
import { settleAll } from '../../src/util/waits.ts';
import { cpuSecondsOf, memoryOf } from '../../test/support/processes.ts';
import { type AuditEvent, parseAuditLog } from '../plan/audit-log.ts';
import { followJobs, type JobTimes } from './follow-jobs.ts';
import {
  AT_ONCE,
  type CattleParts,
  type CattleRig,
  examplePlan,
  NAMESPACE,
  startRig,
} from './rig.ts';
import { measureStarts, type Starts } from './start.ts';

export const NODES = 1_000;
/** One node in ten is upgraded at the same time. */
const SHARE = 10;
/** An odd number, so that the median is a measured value. If the machine is slow for a minute, only one round changes. */
const ROUNDS = 3;
const CLEARED_MS = 500;
const MUTATING = new Set(['create', 'update', 'patch', 'delete', 'deletecollection']);

export interface CattleRun {
  readonly nodes: number;
  readonly slots: number;
  readonly plans: readonly PlanRun[];
  /** The seconds of the runs with bare Jobs: one run before the first Plan, and one run after each Plan. */
  readonly bareSeconds: readonly number[];
  readonly starts: Starts;
}

export interface PlanRun {
  readonly wallSeconds: number;
  readonly times: JobTimes;
  /** The CPU time of the controller, from its start to the end of the Plan. */
  readonly cpuSeconds: number;
  readonly peakRssMiB: number;
  /** The number of calls by `<verb> <resource>`, without calls on Leases. */
  readonly calls: ReadonlyMap<string, number>;
}

export async function measureCattle(
  parts: CattleParts,
  say: (line: string) => void,
): Promise<CattleRun> {
  const { nodes: count = NODES } = parts;
  const slots = Math.ceil(count / SHARE);
  say(`starting a control plane with ${count} simulated nodes`);
  await using rig = await startRig(parts, count);
  say('starting the controller, a bare client and a script in turns');
  const starts = await measureStarts(rig, parts);
  say(`creating ${count} bare Jobs, ${slots} at a time`);
  const bareSeconds = [await createBare(rig, 'before', slots, parts)];
  const plans: PlanRun[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    say(`carrying out Plan ${round} of ${ROUNDS}`);
    plans.push(await carryOut(rig, `bench-${round}`, slots, parts));
    say('creating the bare Jobs again');
    bareSeconds.push(await createBare(rig, `after-${round}`, slots, parts));
  }
  return { plans, nodes: count, slots, starts, bareSeconds };
}

async function carryOut(
  rig: CattleRig,
  name: string,
  slots: number,
  parts: CattleParts,
): Promise<PlanRun> {
  const { clock, abort } = parts;
  const { client, nodes, plane } = rig;
  const controller = await rig.start();
  try {
    const plan = examplePlan(slots, name);
    const end = untilComplete(rig, name, clock, abort);
    let begunAt = 0;
    const followed = followJobs(client, { plan: name, count: nodes.length, clock, abort }, () => {
      begunAt = clock.monotonic();
      void client.create(cattlePlans, plan);
    });
    const [times, endedAt] = await Promise.all([followed, end]);
    const events = parseAuditLog(await readFile(plane.auditLog ?? '', 'utf8'));
    return {
      times,
      wallSeconds: (endedAt - begunAt) / 1000,
      cpuSeconds: await cpuSecondsOf(controller.pid),
      peakRssMiB: (await memoryOf(controller.pid)).peak,
      calls: callsOf(events),
    };
  } finally {
    await controller.stop();
    await client.delete(cattlePlans, name, { namespace: NAMESPACE });
    await clear(rig, clock);
  }
}

/**
 * Deletes all Jobs, and waits until their pods are deleted, too. Otherwise each run would find more objects on the
 * server.
 */
async function clear(rig: CattleRig, clock: Clock): Promise<void> {
  const client = boundedClient(rig.client, AT_ONCE);
  const { items } = await client.listAll(jobs, { namespace: NAMESPACE });
  const deletion = { namespace: NAMESPACE, propagationPolicy: 'Background' } as const;
  await settleAll(
    items.map(async ({ metadata }) => await ifFound(client.delete(jobs, metadata.name, deletion))),
  );
  while ((await client.list(pods, { namespace: NAMESPACE, limit: 1 })).items.length > 0)
    await sleep(clock, CLEARED_MS);
}

/** Resolves with the time at which a watch shows that the Plan is complete. */
async function untilComplete(
  { client }: CattleRig,
  name: string,
  clock: Clock,
  abort: AbortSignal,
): Promise<number> {
  const over = new AbortController();
  const fieldSelector = `metadata.name=${name}`;
  const informer = createInformer(client, cattlePlans, {
    namespace: NAMESPACE,
    fieldSelector,
    clock,
  });
  informer.addHandler({
    updated: ({ status }) => {
      if (
        status?.conditions?.some(({ type, status: is }) => type === 'Complete' && is === 'True') ===
        true
      )
        over.abort();
    },
  });
  await informer.run(AbortSignal.any([over.signal, abort]));
  abort.throwIfAborted();
  return clock.monotonic();
}

/**
 * Returns the seconds that the same Jobs take without a controller. A loop creates the next Job when a Job completes,
 * and does nothing else.
 */
async function createBare(
  rig: CattleRig,
  name: string,
  slots: number,
  { clock, abort }: CattleParts,
): Promise<number> {
  const { client, nodes } = rig;
  const waiting = nodes.map((node) => bareJob(name, node));
  const creating: Promise<unknown>[] = [];
  const createNext = (): void => {
    const job = waiting.shift();
    if (job) creating.push(client.create(jobs, job));
  };
  let begunAt = 0;
  const begin = (): void => {
    begunAt = clock.monotonic();
    for (let slot = 0; slot < slots; slot++) createNext();
  };
  await followJobs(client, { plan: name, count: nodes.length, clock, abort }, begin, createNext);
  await Promise.all(creating);
  const seconds = (clock.monotonic() - begunAt) / 1000;
  await clear(rig, clock);
  return seconds;
}

function bareJob(name: string, node: Node): Job {
  const plan = { ...examplePlan(1), metadata: { name, namespace: NAMESPACE } };
  const config = { name: 'bare', namespace: NAMESPACE, job: DEFAULT_JOB_SETTINGS };
  const rendering = {
    plan,
    node,
    version: 'v1.36.3-k3s1',
    hash: '0'.repeat(56),
    settings: config.job,
  };
  const { ownerReferences: _, ...metadata } = jobOf(config, rendering).metadata;
  return { ...jobOf(config, rendering), metadata };
}

/** Returns the calls of the controller since the creation of the Plan. */
function callsOf(events: readonly AuditEvent[]): ReadonlyMap<string, number> {
  const creation = events.findLastIndex(
    ({ verb, objectRef }) => verb === 'create' && objectRef?.resource === 'plans',
  );
  if (creation < 0)
    throw new RefitError('REFIT_INTERNAL', 'the audit log lacks the creation of the Plan');
  const calls = new Map<string, number>();
  for (const { verb, user, objectRef } of events.slice(creation + 1)) {
    if (user.username !== 'refit-cattle' || !MUTATING.has(verb) || objectRef?.resource === 'leases')
      continue;
    const key = [
      verb,
      [objectRef?.resource, objectRef?.subresource].filter(Boolean).join('/'),
    ].join(' ');
    calls.set(key, (calls.get(key) ?? 0) + 1);
  }
  return calls;
}
