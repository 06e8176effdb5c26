/**
 * Runs one plan over a whole fleet. It measures how long the plan takes, and how many targets it lists in the meantime.
 */

import { examplePlan } from '../../sandbox/cluster/objects.ts';
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import type { Clock } from '../../src/util/clock.ts';
import { RefitError } from '../../src/util/errors.ts';
import { CONTROLLERS, type Fleet } from './fleet.ts';
import { controllerName } from './objects.ts';

const TO = 'v1.36.3+k0s.2';

export interface Rollout {
  /** Seconds from the creation of the plan until a watch shows it completed. */
  readonly wallSeconds: number;
  /** The most targets that the plan listed at the same time. */
  readonly mostListed: number;
}

interface RolloutLimits {
  readonly stallMs: number;
  readonly clock: Clock;
  readonly abort: AbortSignal;
}

/**
 * Runs a plan that selects all controllers by name and all workers by a selector. Throws REFIT_PLAN_FAILED if the plan
 * fails, or does not change for `stallMs`.
 */
export async function rollOut(
  { client }: Pick<Fleet, 'client'>,
  { concurrent, ...limits }: RolloutLimits & { readonly concurrent: number },
  onProgress: (plan: Plan) => void = () => undefined,
): Promise<Rollout> {
  const plan = examplePlan({
    id: 'scale',
    version: TO,
    url: 'https://downloads.example.com/k0s',
    sha256: '0'.repeat(64),
    controllers: Array.from({ length: CONTROLLERS }, (_, index) => controllerName(index)),
    workerSelector: { labels: 'node.k0sproject.io/role=worker' },
    concurrent,
  });
  const startedAt = limits.clock.monotonic();
  const created = await client.create(plans, plan);
  return await followToEnd(client, { created, startedAt }, limits, onProgress);
}

/** Follows a plan that was created at `startedAt` on the monotonic clock. Throws the same errors as `rollOut`. */
export async function followToEnd(
  client: KubeClient,
  { created, startedAt }: { readonly created: Plan; readonly startedAt: number },
  { stallMs, clock, abort }: RolloutLimits,
  onProgress: (plan: Plan) => void = () => undefined,
): Promise<Rollout> {
  const stalled = new AbortController();
  const limit = AbortSignal.any([abort, stalled.signal]);
  const stallsFromNow = (): (() => void) => clock.schedule(stallMs, () => stalled.abort());
  let stopWaiting = stallsFromNow();
  using cleanUp = new DisposableStack();
  cleanUp.defer(() => stopWaiting());
  let mostListed = 0;
  for await (const seen of versionsOf(client, created, limit)) {
    stopWaiting();
    stopWaiting = stallsFromNow();
    mostListed = Math.max(mostListed, listedIn(seen));
    onProgress(seen);
    const state = seen.status?.state ?? 'SchedulableWait';
    if (state === 'Completed')
      return { wallSeconds: (clock.monotonic() - startedAt) / 1000, mostListed };
    if (!state.startsWith('Schedulable'))
      fail(`the plan ended as ${state}: ${JSON.stringify(seen.status)}`);
  }
  abort.throwIfAborted();
  return fail(`the plan has not changed for ${stallMs / 1000} s`);
}

function fail(message: string): never {
  throw new RefitError('REFIT_PLAN_FAILED', message);
}

async function* versionsOf(
  client: KubeClient,
  plan: Plan,
  abort: AbortSignal,
): AsyncGenerator<Plan> {
  yield plan;
  const { resourceVersion } = plan.metadata;
  for await (const event of client.watch(plans, {
    resourceVersion,
    abort,
    timeoutSeconds: 86_400,
  })) {
    if (event.type === 'MODIFIED' || event.type === 'ADDED') yield event.object;
  }
}

function listedIn({ status }: Plan): number {
  return (status?.commands ?? []).reduce(
    (sum, { k0supdate: { controllers = [], workers = [] } = {} }) =>
      sum + controllers.length + workers.length,
    0,
  );
}
