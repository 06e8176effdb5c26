/** Reads conditions, and updates those of a Plan as the original does: a new status or message changes the time, a new reason alone does not. */
import type { CattleCondition, CattlePlan } from '../../api/cattle/plan.ts';
import type { Condition, Job } from '../../kube/resources.ts';
import { rfc3339 } from '../../util/clock.ts';
import { listedSentences } from '../../util/phrases.ts';

/** A condition of our own: the channel fails, and what it said last stays. */
export const CHANNEL_TYPE = 'RefitChannelFails';

/** Another: nodes whose Job or pod cannot start, and why. */
const STALLED_TYPE = 'RefitStalled';
/** As many as fit a line or two. */
const MOST_STALLS = 3;

export interface ConditionUpdate {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

export function conditionOf(plan: CattlePlan, type: string): CattleCondition | undefined {
  return plan.status?.conditions?.find((condition) => condition.type === type);
}

/** What began just now is told once it has lasted, or if it was told before. */
export function withStalls(plan: CattlePlan, stalls: ReadonlyMap<string, boolean>, now: number): CattlePlan {
  const { message: before = '' } = conditionOf(plan, STALLED_TYPE) ?? {};
  const told = [...stalls].flatMap(([message, lasts]) => (lasts || before.includes(message) ? message : []));
  const { conditions = [], ...status } = plan.status ?? {};
  if (told.length === 0) {
    const kept = conditions.filter(({ type }) => type !== STALLED_TYPE);
    return kept.length === conditions.length ? plan : { ...plan, status: { ...status, conditions: kept } };
  }
  const message = listedSentences(told.toSorted(), MOST_STALLS);
  const verdict: ConditionUpdate = { type: STALLED_TYPE, status: 'True', reason: 'Stalled', message };
  return says(plan, verdict)
    ? plan
    : { ...plan, status: { ...status, conditions: withVerdicts(conditions, [verdict], now) } };
}

/** What the status says that read-only commands cannot find out by themselves. */
export function unknownsOf(plan: CattlePlan): string[] {
  const { message: stalled = '' } = conditionOf(plan, STALLED_TYPE) ?? {};
  const { message: failing } = conditionOf(plan, CHANNEL_TYPE) ?? {};
  return [...(failing === undefined ? [] : [failing]), ...(/the API server refuses/.test(stalled) ? [stalled] : [])];
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
export function withVerdicts(known: readonly CattleCondition[], verdicts: readonly ConditionUpdate[], now: number) {
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
