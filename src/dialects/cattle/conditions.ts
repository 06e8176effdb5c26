/** Reads conditions, and updates those of a Plan as the original does: a new status or message changes the time, a new reason alone does not. */
import type { CattleCondition, CattlePlan } from '../../api/cattle/plan.ts';
import type { Condition, Job } from '../../kube/types.ts';
import { rfc3339 } from '../../util/clock.ts';

/** A condition of our own: the channel fails, and what it said last stays. */
export const CHANNEL_TYPE = 'RefitChannelFails';

export interface ConditionUpdate {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

export function conditionOf(plan: CattlePlan, type: string): CattleCondition | undefined {
  return plan.status?.conditions?.find((condition) => condition.type === type);
}

/** The condition of a Job, while it is true. */
export function holds({ status }: Job, type: string): Condition | undefined {
  return status?.conditions?.find((condition) => condition.type === type && condition.status === 'True');
}

/** True if the plan already has exactly this condition. */
export function says(plan: CattlePlan, { type, status, reason, message }: ConditionUpdate): boolean {
  const known = conditionOf(plan, type);
  return known?.status === status && known.reason === reason && (known.message ?? '') === message;
}

/** Keeps other conditions and the order; `now` in milliseconds. */
export function withVerdicts(
  known: readonly CattleCondition[],
  verdicts: readonly ConditionUpdate[],
  now: number,
): CattleCondition[] {
  const byType = new Map(verdicts.map((verdict) => [verdict.type, verdict]));
  const kept = known.map((condition) => {
    const verdict = byType.get(condition.type);
    return verdict ? updated(condition, verdict, now) : condition;
  });
  const types = new Set(known.map(({ type }) => type));
  const added = verdicts.filter(({ type }) => !types.has(type)).map((verdict) => updated(undefined, verdict, now));
  return [...kept, ...added];
}

function updated(known: CattleCondition | undefined, verdict: ConditionUpdate, now: number): CattleCondition {
  const { message, ...rest } = verdict;
  const { message: before = '', ...others } = known ?? { type: verdict.type, status: '' };
  const isSame = others.status === verdict.status && before === message;
  const time = isSame ? {} : { lastUpdateTime: rfc3339(now) };
  return { ...others, ...rest, ...time, ...(message === '' ? {} : { message }) };
}
