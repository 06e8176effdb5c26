/** Carries out the commands of one turn. All writes that the leader makes for a plan are started here. */
import type { ReconcileResult } from '../../runtime/run-controller.ts';
import { type Clock, rfc3339 } from '../../util/clock.ts';
import { soonest } from '../../util/soonest.ts';
import { failuresDecided } from '../assess/target-failures.ts';
import type { NodeAction, Signalling } from '../model/decision.ts';
import { because } from '../model/reasons.ts';
import { type Rollout, type Target, withTargets } from '../model/rollout.ts';
import { reasonAbout } from '../reasons/about-target.ts';
import type { Reporter } from '../report/reporter.ts';
import type { Turn } from '../report/turn.ts';
import type { RetryOrder } from '../schedule/awaited-retries.ts';
import type { Answers, Prober } from '../snapshot/probes.ts';
import { type RefusedWrites, refusedPartOf } from '../snapshot/refused-writes.ts';
import { restOf } from '../turn/batching.ts';
import type { HooksCommand } from '../turn/choose-hooks.ts';
import type { Command } from '../turn/commands.ts';
import { record } from './record.ts';
import { orderRestart, orderRollBack } from './restart.ts';
import { orderRetries } from './retries.ts';
import { endIdleDrains, runNodeActions } from './run-node-actions.ts';
import { type Effects, isCurrent, type Sent, send } from './writes.ts';

export interface ExecuteParts extends Effects {
  readonly clock: Clock;
  readonly prober: Prober;
  readonly refusals: RefusedWrites;
  readonly reporter?: Reporter | undefined;
  /** Carries out the hooks of the plan; undefined if this process carries out none. */
  readonly hooks?: { follow(command: HooksCommand): void } | undefined;
}

/**
 * The result of the commands of a turn. `recorded`: the next turn can follow at once, and this process knows the plan
 * as it was written. `changed`: a write, a refusal or a new drain changes the next decision, so the next turn can
 * follow at once. `outdated`: an object has changed since it was observed, and the watch will show the change. Any
 * other result says when the next turn must be taken.
 */
export type Outcome = 'recorded' | 'changed' | 'outdated' | ReconcileResult;

/**
 * Milliseconds after which the next turn starts if the watch is late after a conflict. Usually the watch shows the
 * other write earlier.
 */
const RECHECK_MS = 1000;
export const RECHECK_SOON: ReconcileResult = { requeueAfterMs: RECHECK_MS };

type Of<K extends Command['kind']> = Extract<Command, { kind: K }>;

function only<K extends Command['kind']>(commands: readonly Command[], kind: K): Of<K>[] {
  return commands.filter((each): each is Of<K> => each.kind === kind);
}

/** Carries out the commands. The answers to probes are added to `answers`, for the next turn. */
export async function execute(
  parts: ExecuteParts,
  answers: Answers,
  turn: Turn,
  commands: readonly Command[],
): Promise<Outcome> {
  const [restart] = only(commands, 'restart');
  if (restart) return await restartPlan(parts, turn);
  const [back] = only(commands, 'roll-back');
  if (back) return await rollBackPlan(parts, turn, back);
  const [retry] = only(commands, 'retry');
  if (retry) return await retryTargets(parts, turn, retry.order);
  const probes = only(commands, 'probe').map(({ probe }) => probe);
  if (probes.length > 0) {
    // A probe without an answer blocks only the targets that need the answer. The missing answer is reported once, and
    // the probe is repeated later.
    const [failure] = await answers.add(
      probes,
      turn.plan,
      turn.assessment.policy.drain.options,
      parts,
    );
    if (failure) parts.reporter?.failed(turn.plan, failure);
    return 'changed';
  }
  const [toRecord] = only(commands, 'record');
  if (toRecord) return await recordRollout(parts, turn, toRecord.rollout);
  for (const command of only(commands, 'hooks')) parts.hooks?.follow(command);
  const outcome = await act(
    parts,
    turn,
    only(commands, 'signal').map(({ signalling }) => signalling),
    only(commands, 'node-action').map(({ nodeAction }) => nodeAction),
  );
  if (outcome === 'changed') return outcome;
  const reportMs = await parts.reporter?.decided(turn);
  const wakes = only(commands, 'wake').map(({ afterMs }) => afterMs);
  const times = outcome === 'outdated' ? [RECHECK_MS, ...wakes, reportMs] : [...wakes, reportMs];
  return { requeueAfterMs: soonest(times), restMs: restOf(turn.assessment.snapshot.rollout) };
}

async function restartPlan(parts: ExecuteParts, turn: Turn): Promise<Outcome> {
  if (!(await orderRestart(parts, turn.plan))) return 'outdated';
  parts.reporter?.restarted(turn);
  return 'recorded';
}

async function rollBackPlan(
  parts: ExecuteParts,
  turn: Turn,
  { plan, reason }: Of<'roll-back'>,
): Promise<Outcome> {
  const { rollout } = turn.assessment.snapshot;
  if (!(await orderRollBack(parts, plan, rollout, reason))) return 'outdated';
  parts.reporter?.rolledBack(turn, reason);
  return 'recorded';
}

async function retryTargets(parts: ExecuteParts, turn: Turn, order: RetryOrder): Promise<Outcome> {
  const { rollout } = turn.assessment.snapshot;
  if (!(await orderRetries(parts, turn.plan, rollout, order))) return 'outdated';
  parts.reporter?.retried(turn, order.retries);
  return 'recorded';
}

async function recordRollout(parts: ExecuteParts, turn: Turn, after: Rollout): Promise<Outcome> {
  const { plan, assessment } = turn;
  const { policy, snapshot } = assessment;
  const failures = failuresDecided(assessment);
  const change = { plan, policy, before: snapshot.rollout, after, failures };
  if (!(await record(parts, change, parts.clock.now()))) return 'outdated';
  parts.reporter?.recorded(turn, after);
  return 'recorded';
}

/**
 * Carries out signals and node actions. Resolves with `changed` if a write, a refusal or a new drain changes the next decision, with
 * `outdated` if an object has changed since it was observed, and with undefined if nothing is left to do
 * until a watch shows a change.
 */
async function act(
  parts: ExecuteParts,
  turn: Turn,
  signals: readonly Signalling[],
  nodeActions: readonly NodeAction[],
): Promise<'changed' | 'outdated' | undefined> {
  const { plan, assessment } = turn;
  const { rollout } = assessment.snapshot;
  endIdleDrains(parts, assessment);
  // Signals and node actions are carried out at the same time, so that a node which waits for the
  // leader is not delayed by the start of another node.
  const sending = send(parts, plan, rollout, signals);
  const running = runAll(parts, turn, nodeActions);
  await Promise.allSettled([sending, running]);
  const sent = await sending;
  const isChanged = await running;
  parts.reporter?.sent(turn, sent);
  const refused = withRefusals(rollout, sent, rfc3339(parts.clock.now()));
  if (refused !== rollout) {
    const outcome = await recordRollout(parts, turn, refused);
    return outcome === 'recorded' ? 'changed' : 'outdated';
  }
  // The API server has refused the writes for these targets. Until a pause is over, the leader writes nothing for them,
  // and the next decision takes that into account.
  const refusedForNow = sent.filter(({ result }) => result === 'refused');
  for (const { signalling, refusal = '' } of refusedForNow)
    parts.refusals.add(rollout, signalling, refusal);
  if (sent.some(({ result }) => result === 'outdated')) return 'outdated';
  if (isChanged || refusedForNow.length > 0) return 'changed';
  // A watch will show the answers of the nodes to the written signals, so the next turn waits for the watch. If the
  // turn has decided on node actions and all of them had no effect, then the plan or an object has changed since the
  // decision. In this case the next decision must follow soon.
  return nodeActions.length === 0 ? undefined : 'outdated';
}

/**
 * Records targets as unsupported if the API server rejected their signals permanently, so that these targets free their
 * slots. Returns the same object if no signal was rejected permanently.
 */
function withRefusals(rollout: Rollout, sent: readonly Sent[], since: string): Rollout {
  const refused = sent.filter(({ result }) => result === 'invalid');
  const [first] = refused;
  if (!first) return rollout;
  const { name } = first.signalling.target;
  const message = `${name}: the API server refused the write that starts the attempt: ${first.refusal}`;
  const moved = refused.map(
    ({ signalling }): Target => ({ ...signalling.target, state: 'unsupported', since }),
  );
  return {
    ...withTargets(rollout, moved),
    reason: reasonAbout(name, because('TargetRefused', message)),
  };
}

/**
 * Carries out the node actions. Resolves with true if at least one node action was done or refused, and if the plan has
 * not changed meanwhile.
 */
async function runAll(
  parts: ExecuteParts,
  turn: Turn,
  nodeActions: readonly NodeAction[],
): Promise<boolean> {
  const { plan, assessment } = turn;
  const { rollout } = assessment.snapshot;
  let isChanged = false;
  let isAsDecided = true;
  await runNodeActions({ ...parts, rollout, now: parts.clock.now() }, nodeActions, {
    isCurrent: async (targets) => {
      isAsDecided = await isCurrent(parts, plan, targets);
      return isAsDecided;
    },
    onDone: (nodeAction) => {
      isChanged = true;
      parts.reporter?.ran(turn, nodeAction);
    },
    onRefused: (nodeAction, words) => {
      isChanged = true;
      parts.refusals.add(rollout, nodeAction, words, refusedPartOf(nodeAction, words));
    },
  });
  return isChanged && isAsDecided;
}
