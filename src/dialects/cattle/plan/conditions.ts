/**
 * Reads and updates conditions as the original does: a new status or message changes the time of a condition, a new
 * reason alone does not.
 */
import type { CattleCondition, CattlePlan } from '../../../api/cattle/plan.ts';
import { type Condition, type Job, trueCondition } from '../../../kube/resources.ts';
import type { ConditionUpdate } from '../../../runtime/conditions.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { listedSentences } from '../../../util/phrases.ts';
import { printable } from '../../../util/printable.ts';

/** The type of Refit's own condition which says that the channel fails, and that the last version is still rolled out. */
export const CHANNEL_TYPE = 'RefitChannelFails';

/** The type of the original's condition which says that the version is known. */
export const RESOLVED_TYPE = 'LatestResolved';

/** The type of Refit's own condition that lists Jobs and pods that cannot start, and why. */
const STALLED_TYPE = 'RefitStalled';
const MOST_STALLS = 3;

export function conditionOf(plan: CattlePlan, type: string): CattleCondition | undefined {
  return plan.status?.conditions?.find((condition) => condition.type === type);
}

/**
 * Returns the plan with a condition that lists the stalls. `stalls` maps the message of each stall to true if the stall
 * has lasted for some time. A stall that has not lasted so long is listed only if the condition already contains its
 * message.
 */
export function withStalls(
  plan: CattlePlan,
  stalls: ReadonlyMap<string, boolean>,
  now: number,
): CattlePlan {
  const before = stallsOf(plan) ?? '';
  const told = [...stalls].flatMap(([message, lasts]) =>
    lasts || before.includes(printable(message)) ? message : [],
  );
  if (told.length === 0) return withoutCondition(plan, STALLED_TYPE);
  const message = listedSentences(told.toSorted(), MOST_STALLS);
  return withVerdict(plan, { type: STALLED_TYPE, status: 'True', reason: 'Stalled', message }, now);
}

/** Returns the plan without the condition of this type; the same object if it has none. */
export function withoutCondition(plan: CattlePlan, type: string): CattlePlan {
  const { conditions = [] } = plan.status ?? {};
  const kept = conditions.filter((each) => each.type !== type);
  return kept.length === conditions.length
    ? plan
    : { ...plan, status: { ...plan.status, conditions: kept } };
}

/**
 * Returns the plan with this condition; the same object if it already has exactly this condition.
 */
export function withVerdict(plan: CattlePlan, verdict: ConditionUpdate, now: number): CattlePlan {
  if (says(plan, verdict)) return plan;
  const conditions = withVerdicts(plan.status?.conditions ?? [], [verdict], now);
  return { ...plan, status: { ...plan.status, conditions } };
}

export function stallsOf(plan: CattlePlan): string | undefined {
  return conditionOf(plan, STALLED_TYPE)?.message;
}

export function holds({ status }: Job, type: string): Condition | undefined {
  return trueCondition(status?.conditions, type);
}

/** Returns true if the plan already has exactly this condition. */
export function says(
  plan: CattlePlan,
  { type, status, reason, message: said }: ConditionUpdate,
): boolean {
  const known = conditionOf(plan, type);
  const message = printable(said);
  return known?.status === status && known.reason === reason && (known.message ?? '') === message;
}

/** Updates or adds the conditions in `verdicts`. Keeps other conditions and their order; `now` is in milliseconds. */
export function withVerdicts(
  known: readonly CattleCondition[],
  verdicts: readonly ConditionUpdate[],
  now: number,
) {
  const all = new Map(known.map((condition) => [condition.type, condition]));
  for (const verdict of verdicts)
    all.set(verdict.type, updated(all.get(verdict.type), verdict, now));
  return [...all.values()];
}

/** Returns the conditions with this time in the condition of this type; `now` is in milliseconds. */
export function withTime(
  conditions: readonly CattleCondition[],
  type: string,
  now: number,
): CattleCondition[] {
  return conditions.map((condition) =>
    condition.type === type ? { ...condition, lastUpdateTime: rfc3339(now) } : condition,
  );
}

function updated(
  known: CattleCondition | undefined,
  verdict: ConditionUpdate,
  now: number,
): CattleCondition {
  const { message: said, ...rest } = verdict;
  const message = printable(said);
  const { message: before = '', ...others } = known ?? { type: verdict.type, status: '' };
  const isSame = others.status === verdict.status && before === message;
  const time = isSame ? {} : { lastUpdateTime: rfc3339(now) };
  return { ...others, ...rest, ...time, ...(message === '' ? {} : { message }) };
}
