/** Owns the loop of one plan: gather, decide, execute, until nothing is left to do now. */
import { splitKey } from '../kube/object-key.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Clock } from '../util/clock.ts';
import { heldBackMs, restOf } from './coalesce.ts';
import { decide, signalsOf } from './decide.ts';
import { errandsOf } from './errands.ts';
import { type Effects, endIdleDrains, isCurrent, prepareErrands, record, send } from './execute.ts';
import { gather, type Known } from './gather.ts';
import { Answers, type Consents, type Inquirer } from './inquire.ts';
import type { Decision, Errand, Inquiry } from './model.ts';
import { careForOrphans } from './orphans.ts';
import type { View } from './own-writes.ts';
import type { CampaignPolicy } from './policy/campaign-policy.ts';
import type { Teller, Turn } from './teller.ts';
import { Silences } from './unanswered.ts';
import { WatchTimes } from './watch-times.ts';
import { freshWorld, type Views } from './world.ts';

export interface ReconcilerOptions<P extends KubeObject> extends Effects<P> {
  readonly plans: View<P>;
  readonly views: Views;
  /** What binds the plan at this moment. */
  policyFor(plan: P): CampaignPolicy;
  readonly clock: Clock;
  readonly inquirer: Inquirer;
  /** Nobody is told anything where absent. */
  readonly teller?: Teller<P> | undefined;
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

/** For one term: how long it has watched each target, and what those said, holds for no other. */
export function createReconciler<P extends KubeObject>(
  options: ReconcilerOptions<P>,
): (key: string, context?: Context) => Promise<Outcome> {
  const { dialect, ownWrites, plans, views, clock } = options;
  const world = freshWorld(views, ownWrites);
  const times = new WatchTimes(clock);
  const consents: Consents = new Set();
  const silences = new Map<string, Silences>();

  return async function reconcile(key, { signal } = {}) {
    const { name, namespace } = splitKey(key);
    const asked = silences.get(key) ?? new Silences();
    silences.set(key, asked);
    const answers = new Answers({ consents, silences: asked }, clock.monotonic());
    const effects = { ...options, signal };
    for (let round = 0; round < MAX_ROUNDS; round++) {
      signal?.throwIfAborted();
      const plan = ownWrites.latest(dialect.plans, plans, name, namespace);
      if (!plan || plan.metadata.deletionTimestamp !== undefined || dialect.isPlan?.(plan) === false) {
        options.teller?.gone(key);
        consents.clear();
        silences.delete(key);
        return await careForOrphans(effects, world, plans);
      }
      const policy = options.policyFor(plan);
      const now = clock.now();
      const snapshot = gather(dialect, plan, world, now, knownTo(options, answers, times));
      const outcome = await take(effects, answers, { world, plan, policy, snapshot, now });
      if (outcome) return { ...outcome, ...soonest(outcome, await careForOrphans(effects, world, plans)) };
    }
    return LOOK_AGAIN;
  };
}

/** One decision and what follows from it; undefined where the next one can be taken at once. */
async function take<P extends KubeObject>(
  options: ReconcilerOptions<P>,
  answers: Answers,
  turn: Turn<P>,
): Promise<Outcome | undefined> {
  const { snapshot, policy, now } = turn;
  const decision = decide(snapshot, policy, now);
  if (decision.inquiries.length > 0) {
    await inquire(options, answers, decision.inquiries, turn);
    return undefined;
  }
  const heldMs = decision.record ? heldBackMs(snapshot.campaign, decision.record, now) : 0;
  if (decision.record && heldMs === 0) {
    if (!(await record(options, turn.world, turn.plan, snapshot.campaign, decision.record, now))) return LOOK_AGAIN;
    options.teller?.recorded(turn, decision.record, decision.waits);
    return undefined;
  }
  const outcome = await act(options, turn, heldMs > 0 ? withoutRecord(decision, heldMs, turn) : decision);
  if (!outcome) return undefined;
  const requeueAfterMs = await options.teller?.decided(turn, decision);
  return { ...soonest(outcome, { requeueAfterMs }), restMs: restOf(snapshot.campaign) };
}

/** What cannot be answered holds back whoever needs it and nobody else; it is told once where people look, and asked again later. */
async function inquire<P extends KubeObject>(
  options: ReconcilerOptions<P>,
  answers: Answers,
  inquiries: readonly Inquiry[],
  { world, plan, policy }: Turn<P>,
): Promise<void> {
  const [failure] = await answers.add(inquiries, world, plan, policy.drain.options, options);
  if (failure) options.teller?.failed(plan, failure);
}

function soonest(...outcomes: readonly Outcome[]): Pick<Outcome, 'requeueAfterMs'> {
  const times = outcomes.flatMap(({ requeueAfterMs }) => requeueAfterMs ?? []);
  return times.length === 0 ? {} : { requeueAfterMs: Math.min(...times) };
}

function knownTo<P extends KubeObject>(
  { drains, inquirer }: ReconcilerOptions<P>,
  answers: Answers,
  times: WatchTimes,
): Known {
  const { controlPlane, preconditions, outlooks } = answers;
  return {
    controlPlane,
    preconditions,
    consentOf: (target) => answers.consentOf(target),
    outlooks: inquirer.look && outlooks,
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
  const [signals, errands] = [signalsOf(snapshot, policy, now), errandsOf(snapshot, policy, now)];
  return { ...decision, signals, errands, recheckAfterMs };
}

/** Undefined where something was written, or a drain begun, that the next decision hangs on. */
async function act<P extends KubeObject>(
  options: ReconcilerOptions<P>,
  turn: Turn<P>,
  { signals, errands, recheckAfterMs }: Decision,
): Promise<Outcome | undefined> {
  const { world, plan, snapshot } = turn;
  const { campaign } = snapshot;
  endIdleDrains(options, snapshot);
  const sent = await send(options, world, plan, campaign, signals);
  options.teller?.sent(turn, sent);
  if (sent.some(({ result }) => result === 'outdated')) return LOOK_AGAIN;
  if (errands.length === 0) return { requeueAfterMs: recheckAfterMs };
  return (await runErrands(options, turn, errands)) ? undefined : LOOK_AGAIN;
}

/** True where anything was done that the next decision may hang on, and the plan was as it was decided on to the end. */
async function runErrands<P extends KubeObject>(
  options: ReconcilerOptions<P>,
  turn: Turn<P>,
  errands: readonly Errand[],
): Promise<boolean> {
  const { world, plan, snapshot } = turn;
  let isDone = false;
  for (const slice of prepareErrands(options, world, snapshot.campaign, errands, options.clock.now())) {
    const targets = slice.errands.map(({ target }) => target);
    if (!(await isCurrent(options, world, plan, targets))) return false;
    isDone = (await slice.run((errand) => options.teller?.ran(turn, errand))) || isDone;
  }
  return isDone;
}
