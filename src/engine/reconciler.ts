/** Owns the loop of one plan: gather, decide, execute, until nothing is left to do now. */
import { splitKey } from '../kube/object-key.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Clock } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import type { Logger } from '../util/log.ts';
import { heldBackMs, restOf } from './coalesce.ts';
import { decide, signalsOf } from './decide.ts';
import type { World } from './dialect.ts';
import { errandsOf } from './errands.ts';
import { type Effects, isCurrent, record, runErrands, send } from './execute.ts';
import { gather, type Known } from './gather.ts';
import { Answers, type Inquirer } from './inquire.ts';
import type { Campaign, Decision, Inquiry, Snapshot, Wait } from './model.ts';
import { type Announcement, narrate } from './narrate.ts';
import { careForOrphans } from './orphans.ts';
import type { View } from './own-writes.ts';
import type { CampaignPolicy } from './policy/campaign-policy.ts';
import { because } from './reasons.ts';
import { WatchTimes } from './watch-times.ts';
import { freshWorld, type Views } from './world.ts';

export interface ReconcilerOptions<P extends KubeObject> extends Effects<P> {
  readonly plans: View<P>;
  readonly views: Views;
  /** What binds the plan at this moment. */
  policyFor(plan: P): CampaignPolicy;
  readonly clock: Clock;
  readonly log: Logger;
  readonly inquirer: Inquirer;
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

/** Records, signals and errands that may follow each other in one go; far more than any plan needs, so that a fault cannot spin. */
const MAX_ROUNDS = 20;
/** Somebody else wrote first: the watch brings the news; this is for a watch that is late. */
const CONFLICT_RECHECK_MS = 1000;
const LOOK_AGAIN: Outcome = { requeueAfterMs: CONFLICT_RECHECK_MS };

export function createReconciler<P extends KubeObject>(
  options: ReconcilerOptions<P>,
): (key: string, context?: Context) => Promise<Outcome> {
  const { dialect, ownWrites, plans, views, clock } = options;
  const world = freshWorld(views, ownWrites);
  const times = new WatchTimes(clock);

  return async function reconcile(key, { signal } = {}) {
    const { name, namespace } = splitKey(key);
    const answers = new Answers();
    const effects = { ...options, signal };
    for (let round = 0; round < MAX_ROUNDS; round++) {
      signal?.throwIfAborted();
      const plan = ownWrites.latest(dialect.plans, plans, name, namespace);
      if (!plan || plan.metadata.deletionTimestamp !== undefined || dialect.isPlan?.(plan) === false) {
        return await careForOrphans(effects, world, plans);
      }
      const policy = options.policyFor(plan);
      const snapshot = gather(dialect, plan, world, clock.now(), knownTo(options, answers, times));
      const decision = decide(snapshot, policy, clock.now());
      if (decision.inquiries.length > 0) {
        await inquire(effects, answers, decision.inquiries, world, plan, policy);
        continue;
      }
      const heldMs = decision.record ? heldBackMs(snapshot.campaign, decision.record, clock.now()) : 0;
      if (decision.record && heldMs === 0) {
        const recorded = await recordAndTell(effects, world, plan, snapshot.campaign, decision.record, decision.waits);
        if (!recorded) return LOOK_AGAIN;
      } else {
        const due = heldMs > 0 ? withoutRecord(decision, heldMs, snapshot, policy, clock.now()) : decision;
        const outcome = await act(effects, world, plan, snapshot.campaign, due);
        if (outcome)
          return {
            ...soonest(outcome, await careForOrphans(effects, world, plans)),
            restMs: restOf(snapshot.campaign),
          };
      }
    }
    return LOOK_AGAIN;
  };
}

/** What cannot be answered holds the plan back, so it is told where people look; then it is asked again, ever more seldom. */
async function inquire<P extends KubeObject>(
  options: ReconcilerOptions<P>,
  answers: Answers,
  inquiries: readonly Inquiry[],
  world: World,
  plan: P,
  { drain }: CampaignPolicy,
): Promise<void> {
  try {
    await answers.add(inquiries, world, plan, drain.options, options);
  } catch (error) {
    options.signal?.throwIfAborted();
    options.announce(plan, { type: 'Warning', reason: because('CannotDecide', messageOf(error)) });
    throw error;
  }
}

function soonest(...outcomes: readonly Outcome[]): Outcome {
  const times = outcomes.flatMap(({ requeueAfterMs }) => requeueAfterMs ?? []);
  return times.length === 0 ? {} : { requeueAfterMs: Math.min(...times) };
}

function knownTo<P extends KubeObject>(
  { drains, inquirer }: ReconcilerOptions<P>,
  { controlPlane, preconditions, outlooks, consents }: Answers,
  times: WatchTimes,
): Known {
  return {
    controlPlane,
    preconditions,
    consents,
    outlooks: inquirer.lookAhead && outlooks,
    drainOf: (node) => drains?.stateOf(node),
    watchedMs: (key, observation) => times.watchedMs(key, observation),
  };
}

/** What is recorded already is signalled, and cared for, at once all the same. */
function withoutRecord(
  decision: Decision,
  heldMs: number,
  snapshot: Snapshot,
  policy: CampaignPolicy,
  now: number,
): Decision {
  const recheckAfterMs = Math.min(heldMs, decision.recheckAfterMs ?? heldMs);
  const [signals, errands] = [signalsOf(snapshot, policy, now), errandsOf(snapshot, policy, now)];
  return { ...decision, signals, errands, recheckAfterMs };
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

/** Undefined where something was written that the next decision hangs on. */
async function act<P extends KubeObject>(
  options: ReconcilerOptions<P>,
  world: World,
  plan: P,
  campaign: Campaign,
  { signals, errands, recheckAfterMs }: Decision,
): Promise<Outcome | undefined> {
  const sent = await send(options, world, plan, campaign, signals);
  for (const { signalling, result } of sent) {
    options.log.info(`signal ${result}`, { target: signalling.target.name, version: signalling.stage.version });
  }
  if (sent.some(({ result }) => result === 'outdated')) return LOOK_AGAIN;
  if (errands.length === 0) return { requeueAfterMs: recheckAfterMs };
  const targets = errands.map(({ target }) => target);
  if (!(await isCurrent(options, world, plan, targets))) return LOOK_AGAIN;
  for (const { kind, target } of errands) {
    options.log.info(`errand ${kind}`, { target: target.name, plan: plan.metadata.name });
  }
  if (await runErrands(options, world, campaign, errands, options.clock.now())) return undefined;
  // What only begins a drain tells by itself when it is through; a write that was refused is decided on anew.
  return errands.every(({ kind }) => kind === 'drain') ? { requeueAfterMs: recheckAfterMs } : LOOK_AGAIN;
}
