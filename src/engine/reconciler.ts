/** Owns the loop of one plan: gather, decide, execute, until nothing is left to do now. */
import { splitKey } from '../kube/object-key.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Clock } from '../util/clock.ts';
import { batchMs, restOf } from './act/batching.ts';
import { type Effects, isCurrent } from './act/effects.ts';
import { endIdleDrains, prepareNodeActions } from './act/node-actions.ts';
import { cleanUpOrphanedWork } from './act/orphaned-work.ts';
import { record } from './act/record.ts';
import { send } from './act/signal.ts';
import { decide, signalsOf } from './decide/decide.ts';
import { nodeActionsOf } from './decide/node-actions.ts';
import type { Decision, NodeAction, Probe } from './model/decided.ts';
import { gather, type Known } from './observe/gather.ts';
import type { View } from './observe/own-writes.ts';
import { ProbeBackoff } from './observe/probe-backoff.ts';
import { Answers, type DrainDelegations, type Prober } from './observe/probes.ts';
import { WatchTimes } from './observe/watch-times.ts';
import { freshWorld, type Views } from './observe/world.ts';
import type { RolloutPolicy } from './policy/rollout-policy.ts';
import type { Reporter, Turn } from './report/reporter.ts';

export interface ReconcilerOptions<P extends KubeObject> extends Effects<P> {
  readonly plans: View<P>;
  readonly views: Views;
  /** What binds the plan at this moment. */
  policyFor(plan: P): RolloutPolicy;
  readonly clock: Clock;
  readonly prober: Prober;
  /** Nobody is told anything where absent. */
  readonly reporter?: Reporter<P> | undefined;
}

/** What the runtime tells of one reconcile. */
export interface Context {
  /** Aborts when its time is over or the controller has to stop: every request ends with it. */
  readonly abort?: AbortSignal;
}

export interface Recheck {
  /** Milliseconds after which to look again although no watch may tell; absent where watches suffice. */
  readonly requeueAfterMs?: number | undefined;
  /** Milliseconds in which not to look again whatever the watches tell. */
  readonly restMs?: number | undefined;
}

/** Records, signals and node actions that may follow each other in one go; far more than any plan needs, so that a fault cannot spin. */
const MAX_ROUNDS = 20;
/** Somebody else wrote first: the watch brings the news; this is for a watch that is late. */
const CONFLICT_RECHECK_MS = 1000;
const LOOK_AGAIN: Recheck = { requeueAfterMs: CONFLICT_RECHECK_MS };

/** For one term: how long it has watched each target, and what those said, holds for no other. */
export function createReconciler<P extends KubeObject>(
  options: ReconcilerOptions<P>,
): (key: string, context?: Context) => Promise<Recheck> {
  const { dialect, ownWrites, plans, views, clock } = options;
  const world = freshWorld(views, ownWrites);
  const times = new WatchTimes(clock);
  const drainDelegations: DrainDelegations = new Set();
  const backoffs = new Map<string, ProbeBackoff>();

  return async function reconcile(key, { abort } = {}) {
    const { name, namespace } = splitKey(key);
    const asked = backoffs.get(key) ?? new ProbeBackoff();
    backoffs.set(key, asked);
    const answers = new Answers({ drainDelegations, backoffs: asked }, clock.monotonic());
    const effects = { ...options, abort };
    for (let round = 0; round < MAX_ROUNDS; round++) {
      abort?.throwIfAborted();
      const plan = ownWrites.latest(dialect.plans, plans, name, namespace);
      if (!plan || plan.metadata.deletionTimestamp !== undefined || dialect.scope?.isPlan?.(plan) === false) {
        options.reporter?.gone(key);
        drainDelegations.clear();
        backoffs.delete(key);
        return await cleanUpOrphanedWork(effects, world, plans);
      }
      const policy = options.policyFor(plan);
      const now = clock.now();
      const snapshot = gather(dialect, plan, world, now, knownTo(options, answers, times));
      const outcome = await take(effects, answers, { world, plan, policy, snapshot, now });
      if (outcome) return { ...outcome, ...soonest(outcome, await cleanUpOrphanedWork(effects, world, plans)) };
    }
    return LOOK_AGAIN;
  };
}

/** One decision and what follows from it; undefined where the next one can be taken at once. */
async function take<P extends KubeObject>(
  options: ReconcilerOptions<P>,
  answers: Answers,
  turn: Turn<P>,
): Promise<Recheck | undefined> {
  const { snapshot, policy, now } = turn;
  const decision = decide(snapshot, policy, now);
  if (decision.probes.length > 0) {
    await probeAll(options, answers, decision.probes, turn);
    return undefined;
  }
  const heldMs = decision.record ? batchMs(snapshot.rollout, decision.record, now) : 0;
  if (decision.record && heldMs === 0) {
    if (!(await record(options, turn.world, turn.plan, snapshot.rollout, decision.record, now))) return LOOK_AGAIN;
    options.reporter?.recorded(turn, decision.record, decision.waits);
    return undefined;
  }
  const outcome = await act(options, turn, heldMs > 0 ? withoutRecord(decision, heldMs, turn) : decision);
  if (!outcome) return undefined;
  const requeueAfterMs = await options.reporter?.decided(turn, decision);
  return { ...soonest(outcome, { requeueAfterMs }), restMs: restOf(snapshot.rollout) };
}

/** What cannot be answered holds back whoever needs it and nobody else; it is told once where people look, and asked again later. */
async function probeAll<P extends KubeObject>(
  options: ReconcilerOptions<P>,
  answers: Answers,
  probes: readonly Probe[],
  { world, plan, policy }: Turn<P>,
): Promise<void> {
  const [failure] = await answers.add(probes, world, plan, policy.drain.options, options);
  if (failure) options.reporter?.failed(plan, failure);
}

function soonest(...outcomes: readonly Recheck[]): Pick<Recheck, 'requeueAfterMs'> {
  const times = outcomes.flatMap(({ requeueAfterMs }) => requeueAfterMs ?? []);
  return times.length === 0 ? {} : { requeueAfterMs: Math.min(...times) };
}

function knownTo<P extends KubeObject>(
  { drains, prober }: ReconcilerOptions<P>,
  answers: Answers,
  times: WatchTimes,
): Known {
  const { controlPlane, preconditions, drainPreviews } = answers;
  return {
    controlPlane,
    preconditions,
    drainDelegationOf: (target) => answers.drainDelegationOf(target),
    drainPreviews: prober.look && drainPreviews,
    drainOf: (node, owner) => drains?.stateOf(node, owner),
    watch: (target, observation) => times.watch(target, observation),
  };
}

/** What is recorded already is signalled, and cared for, at once all the same. */
function withoutRecord<P extends KubeObject>(
  decision: Decision,
  heldMs: number,
  { snapshot, policy, now }: Turn<P>,
): Decision {
  const recheckAfterMs = Math.min(heldMs, decision.recheckAfterMs ?? heldMs);
  const [signals, nodeActions] = [signalsOf(snapshot, policy, now), nodeActionsOf(snapshot, policy, now)];
  return { ...decision, signals, nodeActions, recheckAfterMs };
}

/** Undefined where something was written, or a drain begun, that the next decision hangs on. */
async function act<P extends KubeObject>(
  options: ReconcilerOptions<P>,
  turn: Turn<P>,
  { signals, nodeActions, recheckAfterMs }: Decision,
): Promise<Recheck | undefined> {
  const { world, plan, snapshot } = turn;
  const { rollout } = snapshot;
  endIdleDrains(options, snapshot);
  const sent = await send(options, world, plan, rollout, signals);
  options.reporter?.sent(turn, sent);
  if (sent.some(({ result }) => result === 'outdated')) return LOOK_AGAIN;
  if (nodeActions.length === 0) return { requeueAfterMs: recheckAfterMs };
  return (await runNodeActions(options, turn, nodeActions)) ? undefined : LOOK_AGAIN;
}

/** True where anything was done that the next decision may hang on, and the plan was as it was decided on to the end. */
async function runNodeActions<P extends KubeObject>(
  options: ReconcilerOptions<P>,
  turn: Turn<P>,
  nodeActions: readonly NodeAction[],
): Promise<boolean> {
  const { world, plan, snapshot } = turn;
  let isDone = false;
  for (const slice of prepareNodeActions(options, world, snapshot.rollout, nodeActions, options.clock.now())) {
    const targets = slice.nodeActions.map(({ target }) => target);
    if (!(await isCurrent(options, world, plan, targets))) return false;
    isDone = (await slice.run((nodeAction) => options.reporter?.ran(turn, nodeAction))) || isDone;
  }
  return isDone;
}
