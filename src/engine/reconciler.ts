/** Owns the loop of one plan: gather, decide, execute, until nothing is left to do now. */
import { splitKey } from '../kube/object-key.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/log.ts';
import { heldBackMs, restOf } from './coalesce.ts';
import { decide, signalsOf } from './decide.ts';
import type { Endpoint, World } from './dialect.ts';
import { type Effects, record, send } from './execute.ts';
import { gather } from './gather.ts';
import type { Campaign, Decision, EndpointHealth, Policy, Signalling, Wait } from './model.ts';
import { type Announcement, narrate } from './narrate.ts';
import type { View } from './own-writes.ts';
import { freshWorld, type Views } from './world.ts';

export interface ReconcilerOptions<P extends KubeObject> extends Effects<P> {
  readonly plans: View<P>;
  readonly views: Views;
  readonly policy: Policy;
  readonly clock: Clock;
  readonly log: Logger;
  askControlPlane(endpoints: readonly Endpoint[], signal?: AbortSignal): Promise<readonly EndpointHealth[]>;
  announce(plan: P, announcement: Announcement): void;
}

/** What the runtime tells of one reconcile. */
export interface Context {
  /** Aborts when its time is over or the controller has to stop: every request ends with it. */
  readonly signal?: AbortSignal;
}

export interface Outcome {
  /** Milliseconds after which to look again although no watch may tell; absent where watches suffice. */
  readonly requeueAfterMs?: number | undefined;
  /** Milliseconds in which not to look again whatever the watches tell. */
  readonly restMs?: number | undefined;
}

/** Records and signals that may follow each other in one go; far more than any plan needs, so that a fault cannot spin. */
const MAX_ROUNDS = 20;
/** Somebody else wrote first: the watch brings the news; this is for a watch that is late. */
const CONFLICT_RECHECK_MS = 1000;

export function createReconciler<P extends KubeObject>(
  options: ReconcilerOptions<P>,
): (key: string, context?: Context) => Promise<Outcome> {
  const { dialect, ownWrites, plans, views, policy, clock } = options;
  const world = freshWorld(views, ownWrites);

  return async function reconcile(key, { signal } = {}) {
    const { name, namespace } = splitKey(key);
    let controlPlane: readonly EndpointHealth[] | undefined;
    const effects = { ...options, signal };
    for (let round = 0; round < MAX_ROUNDS; round++) {
      signal?.throwIfAborted();
      const plan = ownWrites.latest(dialect.plans, plans, name, namespace);
      if (!plan || plan.metadata.deletionTimestamp !== undefined || dialect.isPlan?.(plan) === false) return {};
      const snapshot = gather(dialect, plan, world, clock.now(), controlPlane);
      const decision = decide(snapshot, policy, clock.now());
      if (decision.wantsHealth && !controlPlane) {
        controlPlane = await options.askControlPlane(dialect.endpoints(world), signal);
        continue;
      }
      const heldMs = decision.record ? heldBackMs(snapshot.campaign, decision.record, clock.now()) : 0;
      if (decision.record && heldMs === 0) {
        const recorded = await recordAndTell(effects, world, plan, snapshot.campaign, decision.record, decision.waits);
        if (!recorded) return { requeueAfterMs: CONFLICT_RECHECK_MS };
      } else {
        const due = heldMs > 0 ? heldBack(decision, heldMs, signalsOf(snapshot, policy, clock.now())) : decision;
        const outcome = await signalAll(effects, world, plan, snapshot.campaign, due);
        return { ...outcome, restMs: restOf(snapshot.campaign) };
      }
    }
    return { requeueAfterMs: CONFLICT_RECHECK_MS };
  };
}

/** What is recorded already is signalled at once all the same. */
function heldBack(decision: Decision, heldMs: number, signals: readonly Signalling[]): Decision {
  return { ...decision, signals, recheckAfterMs: Math.min(heldMs, decision.recheckAfterMs ?? heldMs) };
}

async function recordAndTell<P extends KubeObject>(
  options: ReconcilerOptions<P>,
  world: World,
  plan: P,
  before: Campaign,
  after: Campaign,
  waits: readonly Wait[],
): Promise<boolean> {
  if (!(await record(options, world, plan, before, after, options.clock.now()))) return false;
  for (const announcement of narrate(before, after, waits)) {
    options.log.info(announcement.reason.message, { plan: plan.metadata.name, reason: announcement.reason.code });
    options.announce(plan, announcement);
  }
  return true;
}

async function signalAll<P extends KubeObject>(
  options: ReconcilerOptions<P>,
  world: World,
  plan: P,
  campaign: Campaign,
  { signals, recheckAfterMs }: Decision,
): Promise<Outcome> {
  const sent = await send(options, world, plan, campaign, signals);
  for (const { signalling, result } of sent) {
    options.log.info(`signal ${result}`, { target: signalling.target.name, version: signalling.stage.version });
  }
  const isOutdated = sent.some(({ result }) => result === 'outdated');
  return { requeueAfterMs: isOutdated ? CONFLICT_RECHECK_MS : recheckAfterMs };
}
