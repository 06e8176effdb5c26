/** The loop of one plan: gather, decide, act, until nothing is left to do now. */
import { type KubeObject, nodes, splitKey } from '../kube/resources.ts';
import { isOfObject } from '../kube/status-error.ts';
import type { ReconcileContext, ReconcileResult } from '../runtime/controller.ts';
import { type Clock, rfc3339 } from '../util/clock.ts';
import { evaluationsFor } from './assess/evaluate-target.ts';
import { claimsFor } from './execute/claims.ts';
import { cleanUpOrphanedWork } from './execute/clean-up-orphaned-work.ts';
import { record } from './execute/record.ts';
import { orderRestart, restartOf, withRunBegun } from './execute/restart.ts';
import { endIdleDrains, runNodeActions } from './execute/run-node-actions.ts';
import { allowsStarts, batchMs, restOf } from './execute/status-shards.ts';
import { type WorkBeside, workBeside } from './execute/work-beside.ts';
import { type Effects, isCurrent, type Sent, send } from './execute/writes.ts';
import type { Decision, NodeAction } from './model/decision.ts';
import { because } from './model/reasons.ts';
import { type Rollout, type Target, withTargets } from './model/rollout.ts';
import type { RolloutPolicy } from './policy/rollout-policy.ts';
import type { Reporter, Turn } from './report/reporter.ts';
import { gather, type Known } from './snapshot/gather.ts';
import {
  type Answers,
  answersOf,
  keptPreviews,
  type Prober,
  probeBackoff,
} from './snapshot/probes.ts';
import { type RefusedWrites, refusedWrites } from './snapshot/refused-writes.ts';
import { targetTimes, watchTimes } from './snapshot/watch-times.ts';
import type { View } from './snapshot/world.ts';
import { decideOn, needsRecord, recordedWork, signalsOf } from './turn/decide.ts';

export interface ReconcilerOptions extends Effects {
  readonly plans: View<KubeObject>;
  policyFor(plan: KubeObject): RolloutPolicy;
  readonly clock: Clock;
  readonly prober: Prober;
  readonly reporter?: Reporter | undefined;
}

/** Decisions in one reconcile: more than any plan needs, so that a fault cannot loop forever. */
const MAX_ROUNDS = 20;
/** Milliseconds in which one reconcile decides beside its own writes; then other plans have their turn. */
const BESIDE_MS = 3_000;
/** After a conflict the watch brings the other write; this is for a watch that is late. */
const RECHECK_SOON: ReconcileResult = { requeueAfterMs: 1000 };

const REFUSED = 'the API server refuses to record the next step';

interface TermOptions extends ReconcilerOptions {
  readonly refusals: RefusedWrites;
  readonly times: ReturnType<typeof watchTimes>;
  readonly watch: ReturnType<typeof targetTimes>;
  readonly beside: WorkBeside;
}

type Reconcile = (key: string, context?: Partial<ReconcileContext>) => Promise<ReconcileResult>;

/** For one term of leadership: what it has watched and asked is not valid in another. */
export function createReconciler(options: ReconcilerOptions): Reconcile {
  const { dialect, world, ownWrites, plans, clock } = options;
  const times = watchTimes(clock);
  const drainDelegations = new Set<string>();
  const preview = keptPreviews();
  const ofPlan = () => ({
    backoffs: probeBackoff(),
    watch: targetTimes(),
    beside: workBeside(clock),
  });
  const plansSeen = new Map<string, ReturnType<typeof ofPlan>>();
  const refusals = refusedWrites(clock, (rollout, at, reason) =>
    options.reporter?.refused(rollout, at, reason),
  );

  return async function reconcile(key, { abort, stop, isDue = () => true } = {}) {
    const { name, namespace } = splitKey(key);
    const { backoffs, watch, beside } = plansSeen.getOrInsertComputed(key, ofPlan);
    const newAnswers = (): Answers =>
      answersOf({ drainDelegations, preview, backoffs }, clock.monotonic());
    let answers = newAnswers();
    const effects = { ...options, abort, refusals, times, watch, beside };
    // However this ends: no write outlives the term.
    await using writes = new AsyncDisposableStack();
    writes.defer(async () => await beside.end());
    const cleanUp = async (): Promise<ReconcileResult> =>
      soonest(await cleanUpOrphanedWork(effects, plans, key), {
        requeueAfterMs: refusals.nextMs(),
      });
    let records = 0;
    const until = clock.monotonic() + BESIDE_MS;
    const isOver = (): boolean => clock.monotonic() > until || stop?.aborted === true;
    for (let round = 0; round < MAX_ROUNDS && !isOver(); ) {
      abort?.throwIfAborted();
      const stored = ownWrites.latest(dialect.plans, plans, name, namespace);
      if (
        !stored ||
        stored.metadata.deletionTimestamp !== undefined ||
        dialect.scope?.isPlan?.(stored) === false
      ) {
        await beside.end();
        options.reporter?.gone(key);
        // A plan may be a Node: one that was made anew is not cordoned.
        options.drains?.keep(
          (node) => node !== name || world.get(nodes, node)?.spec?.unschedulable === true,
        );
        drainDelegations.clear();
        plansSeen.delete(key);
        return await cleanUp();
      }
      const policy = options.policyFor(stored);
      const now = clock.now();
      const plan = withRunBegun(options, stored, policy, now);
      const snapshot = gather(dialect, plan, world, now, knownTo(effects, answers, policy));
      const turn = { plan, ...evaluationsFor(snapshot, policy, now) };
      const outcome = await take(effects, answers, turn, records)
        .then(async (taken) =>
          taken === 'beside' && !(await beside.next(isDue)) ? 'outdated' : taken,
        )
        .catch(async (error: unknown) => {
          if (!isOfObject(error)) throw error;
          // Only an Event can say it: the status is what cannot be written.
          options.reporter?.failed(plan, because('RecordRefused', `${REFUSED}: ${error.message}`));
          await beside.end();
          // Others wait for what it claimed.
          await cleanUp();
          throw error;
        });
      if (outcome === 'beside') answers = newAnswers();
      else round++;
      if (outcome === 'recorded') records++;
      // What was written ahead of the record is not left over: the next record needs it.
      else if (outcome === 'outdated') return RECHECK_SOON;
      else if (outcome && outcome !== 'beside')
        return { ...outcome, ...soonest(outcome, await cleanUp()) };
    }
    if (!isOver()) return RECHECK_SOON;
    await beside.end();
    await cleanUp();
    return { requeueAfterMs: 1 };
  };
}

type Taken = ReconcileResult | 'recorded' | 'outdated' | 'beside' | undefined;

/** One decision and its effects; undefined if the next decision can follow at once. `records`: so many since the plan was woken. */
async function take(
  options: TermOptions,
  answers: Answers,
  turn: Turn,
  records: number,
): Promise<Taken> {
  const { plan, policy, snapshot, now } = turn;
  const { beside } = options;
  const { rollout } = snapshot;
  if (beside.isRunning() && rollout.phase !== 'running') return 'beside';
  const restart = restartOf(plan, turn);
  if (restart) {
    const isWritten = await orderRestart(options, restart);
    if (isWritten) options.reporter?.restarted(turn);
    return isWritten ? 'recorded' : 'outdated';
  }
  if (needsRecord(turn)) beside.hastenRecord();
  // The rest is decided with the next record, which is soon.
  const dueMs = beside.recordDueMs();
  if (rollout.phase === 'running' && (beside.isRunning() ? !beside.isRecordDue() : dueMs > 0)) {
    await startBeside(options, turn, { signals: signalsOf(turn), nodeActions: [] });
    // With nothing on its way, other plans have their turn.
    return beside.isRunning() ? 'beside' : { requeueAfterMs: dueMs, restMs: restOf(rollout) };
  }
  const decision = decideOn(turn);
  if (decision.probes.length > 0) {
    // One without an answer blocks only the targets that need it. It is reported once and asked again later.
    const [failure] = await answers.add(decision.probes, plan, policy.drain.options, options);
    if (failure) options.reporter?.failed(plan, failure);
    return undefined;
  }
  const writing = async (after: Rollout): Promise<boolean> => {
    const isRecorded = await record(options, { plan, policy, before: rollout, after }, now);
    if (isRecorded) options.reporter?.recorded(turn, after, decision.waits);
    return isRecorded;
  };
  if (decision.record && allowsStarts(rollout, decision.record)) {
    if (beside.isRecordDue()) beside.record(writing(decision.record));
    const taken = await startBeside(options, turn, recordedWork(turn));
    await options.reporter?.decided(turn, decision);
    return taken;
  }
  if (beside.isRunning()) return 'beside';
  const heldMs = decision.record ? batchMs(rollout, decision.record, now, records) : 0;
  const isClaiming =
    !decision.record && decision.nodeActions.length === 0 && rollout.phase === 'running';
  const claims = isClaiming
    ? claimsFor(options, { plan, policy, before: rollout, after: rollout })
    : [];
  // A record claims, too.
  const after = claims.some(({ stage, target }) => turn.of(stage, target).gate === undefined)
    ? rollout
    : decision.record;
  if (after && heldMs === 0) return (await writing(after)) ? 'recorded' : 'outdated';
  // While the record waits for its batch, signals and node actions for what is recorded already are not delayed.
  const isHeld = heldMs > 0;
  const outcome = await act(
    options,
    turn,
    isHeld ? { ...decision, ...recordedWork(turn) } : decision,
  );
  if (!outcome) return undefined;
  const requeueAfterMs = await options.reporter?.decided(turn, decision);
  const batch = isHeld ? [{ requeueAfterMs: heldMs }] : [];
  return { ...soonest(outcome, { requeueAfterMs }, ...batch), restMs: restOf(rollout) };
}

/** Starts what is recorded ahead; nobody waits for that. */
async function startBeside(
  options: TermOptions,
  turn: Turn,
  { signals, nodeActions }: Acts,
): Promise<Taken> {
  const { beside } = options;
  const unsent = beside.unsent(signals);
  const acting = act(options, turn, { signals: unsent, nodeActions }).then(
    (outcome) => outcome !== RECHECK_SOON,
  );
  if (unsent.length > 0) beside.send(acting, unsent);
  else await acting;
  return 'beside';
}

function soonest(...outcomes: readonly ReconcileResult[]): Pick<ReconcileResult, 'requeueAfterMs'> {
  const times = outcomes.flatMap(({ requeueAfterMs }) => requeueAfterMs ?? []);
  return times.length === 0 ? {} : { requeueAfterMs: Math.min(...times) };
}

function knownTo(options: TermOptions, { known }: Answers, policy: RolloutPolicy): Known {
  const { drains, prober, refusals, times, watch, clock } = options;
  const now = clock.monotonic();
  return {
    ...known,
    drainPreviews: prober.previewDrains && known.drainPreviews,
    drainOf: (node, owner) => drains?.stateOf(node, owner),
    watch: (target, observation) => {
      if (policy.heldBy === undefined) return watch(target, observation, now);
      // Nothing is late while nothing may go on, and its time begins anew afterwards.
      watch(target, { kind: 'none' }, now);
      return { watchedMs: 0, followedMs: 0 };
    },
    watchForeign: (work) => times.watchForeign(work),
    watchPayloads: (rollout) => times.watchPayloads(rollout, policy.agent),
    refusalOf: (rollout, target) => refusals.of(rollout, target),
  };
}

type Acts = Pick<Decision, 'signals' | 'nodeActions' | 'recheckAfterMs'>;

/** Undefined if something was written, or a drain begun, that changes the next decision. */
async function act(
  options: TermOptions,
  turn: Turn,
  decision: Acts,
): Promise<ReconcileResult | undefined> {
  const { signals, nodeActions, recheckAfterMs } = decision;
  const { plan, policy, snapshot } = turn;
  const { rollout } = snapshot;
  endIdleDrains(options, turn);
  // At once: a node that waits for us is not held up by the start of another.
  const [sending, running] = [
    send(options, plan, rollout, signals),
    runAll(options, turn, nodeActions),
  ];
  await Promise.allSettled([sending, running]);
  const [sent, isChanged] = await Promise.all([sending, running]);
  options.reporter?.sent(turn, sent);
  const refused = withRefusals(rollout, sent, rfc3339(options.clock.now()));
  if (refused === rollout) options.beside.allowRecords();
  else {
    const recording = record(
      options,
      { plan, policy, before: rollout, after: refused },
      options.clock.now(),
    );
    if (!(await options.beside.recordRefusals(recording))) return RECHECK_SOON;
    options.reporter?.recorded(turn, refused, []);
    return undefined;
  }
  // Nothing more is written for these targets before a pause is over; the next decision says so.
  const held = sent.filter(({ result }) => result === 'refused');
  for (const { signalling, refusal = '' } of held)
    options.refusals.add(rollout, signalling, refusal);
  if (sent.some(({ result }) => result === 'outdated')) return RECHECK_SOON;
  if (isChanged || held.length > 0) return undefined;
  return nodeActions.length === 0 ? { requeueAfterMs: recheckAfterMs } : RECHECK_SOON;
}

/** The same object if nothing was refused. A target that cannot be signalled gives up its slot. */
function withRefusals(rollout: Rollout, sent: readonly Sent[], since: string): Rollout {
  const refused = sent.filter(({ result }) => result === 'invalid');
  const [first] = refused;
  if (!first) return rollout;
  const message = `${first.signalling.target.name}: the API server refused what would start it: ${first.refusal}`;
  const moved = refused.map(
    ({ signalling }): Target => ({ ...signalling.target, state: 'unsupported', since }),
  );
  return { ...withTargets(rollout, moved), reason: because('TargetRefused', message) };
}

/** True if anything was done or refused, and the plan stayed as decided on to the end. */
async function runAll(
  options: TermOptions,
  turn: Turn,
  nodeActions: readonly NodeAction[],
): Promise<boolean> {
  const { plan, snapshot } = turn;
  let [isChanged, isAsDecided] = [false, true];
  await runNodeActions(
    { ...options, rollout: snapshot.rollout, now: options.clock.now() },
    nodeActions,
    {
      isCurrent: async (targets) => {
        isAsDecided = await isCurrent(options, plan, targets);
        return isAsDecided;
      },
      onDone: (nodeAction) => {
        isChanged = true;
        options.reporter?.ran(turn, nodeAction);
      },
      onRefused: (nodeAction, words) => {
        isChanged = true;
        options.refusals.add(snapshot.rollout, nodeAction, words);
      },
    },
  );
  return isChanged && isAsDecided;
}
