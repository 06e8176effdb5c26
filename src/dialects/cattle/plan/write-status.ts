/** Writes a rollout into the status of its Plan, with the conditions of the original, because scripts wait for them. */

import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { NOTHING_DONE } from '../../../engine/assess/ended.ts';
import { type Rollout, type Target, targetsIn, withStages } from '../../../engine/model/rollout.ts';
import { isOpenPlan } from '../../../engine/model/shown-phases.ts';
import { keyOf } from '../../../kube/resources.ts';
import type { ConditionUpdate } from '../../../runtime/conditions.ts';
import { sameJson } from '../../../util/json.ts';
import { openAt } from '../../../util/maintenance-windows.ts';
import {
  FAILED_TYPE,
  failureOn,
  failuresText,
  withFurtherNodes,
  withoutFurtherNodes,
} from './attempts.ts';
import { conditionOf, RESOLVED_TYPE, withTime, withVerdicts } from './conditions.ts';
import { conditionsOf, NOT_READY } from './latest.ts';
import { VERSION_TYPE, type VersionConfig, versionCondition } from './version-rules.ts';
import { windowsOf } from './window.ts';

/** The types of two of Refit's own conditions. Such a condition is removed when it is no longer true. */
export const WAITING_TYPE = 'RefitWaits';
export const ABORTED_TYPE = 'RefitAborted';
/** The type of the condition which says that the Plan selects no node. As in the original, such a Plan is complete. */
const EMPTY_TYPE = 'RefitNoTargets';
/**
 * The type of a condition in which an earlier build of Refit named the next nodes. Refit now only removes this
 * condition.
 */
const FORMER_TYPE = 'RefitNext';
const OWN_TYPES = new Set([
  FAILED_TYPE,
  WAITING_TYPE,
  ABORTED_TYPE,
  EMPTY_TYPE,
  FORMER_TYPE,
  VERSION_TYPE,
]);

/**
 * The reasons of the condition `Complete` about a node whose Job succeeded: its kubelet did not report the version, or
 * the leader did not uncordon it in time. They are the codes of the engine, so that a record keeps them.
 */
const AFTER_JOB = ['VersionNotReached', 'UncordonTooLong'] as const;
type AfterJob = (typeof AFTER_JOB)[number];

/** Returns the reason if it is about a node that failed although its Job had succeeded. */
export const afterJob = (reason: string | undefined): AfterJob | undefined =>
  AFTER_JOB.find((each) => each === reason);

/**
 * The reason of a condition of type WAITING_TYPE if the leader drains the nodes. From this reason, read-only commands
 * can tell that gates also check PodDisruptionBudgets.
 */
export const GATE_BEFORE_DRAIN = 'GateBeforeDrain';

export function project(
  rollout: Rollout,
  plan: CattlePlan,
  now: number,
  config: VersionConfig & { readonly gate?: string } = {},
): CattlePlan {
  // `status.applying` also lists failed nodes, because they keep their slots.
  const holders = targetsIn(rollout, 'intended', 'failed').toSorted((a, b) =>
    a.name < b.name ? -1 : 1,
  );
  const applying = holders.map(hostOf);
  const complete = completeness(rollout, plan, applying, now);
  const own = ownConditions(rollout, plan, complete, config);
  const verdicts = [complete, ...conditionsOf(plan, rollout.problems), ...own];
  const holding = new Set(own.map(({ type }) => type));
  const kept = (plan.status?.conditions ?? []).filter(
    ({ type }) => !OWN_TYPES.has(type) || holding.has(type),
  );
  const { latestVersion: _v, latestHash: _h, applying: _a, ...others } = plan.status ?? {};
  const latestVersion = rollout.stages[0]?.version ?? '';
  const conditions = withVerdicts(kept, verdicts, now);
  const isAnother = rollout.id !== '' && plan.status?.latestHash !== rollout.id;
  return {
    ...plan,
    status: {
      ...others,
      // The condition says the same about every version. Its time tells since when the nodes wait for this version.
      conditions: isAnother ? withTime(conditions, RESOLVED_TYPE, now) : conditions,
      ...(latestVersion === '' ? {} : { latestVersion }),
      ...(rollout.id === '' ? {} : { latestHash: rollout.id }),
      ...(applying.length === 0 ? {} : { applying }),
    },
  };
}

export function hostOf({ key }: Target): string {
  return key.slice(0, key.indexOf('/'));
}

/**
 * The reasons of the condition `Complete` that Refit replaces as soon as they are no longer true. Any other reason
 * stays until the next version.
 */
const PASSING = new Set([
  NOT_READY.reason,
  'Waiting',
  'JobFailed',
  'ValidationFailed',
  ...AFTER_JOB,
]);

function completeness(
  rollout: Rollout,
  plan: CattlePlan,
  applying: readonly string[],
  now: number,
): ConditionUpdate {
  if (rollout.problems.length > 0) return NOT_READY;
  if (rollout.phase === 'done')
    return { type: 'Complete', status: 'True', reason: 'Complete', message: '' };
  const open = (reason: string, message = '') =>
    ({ type: 'Complete', status: 'False', reason, message }) as const;
  const { status, reason = '', message: told = '' } = conditionOf(plan, 'Complete') ?? {};
  const message = withoutFurtherNodes(told);
  // The message of the engine begins with the name of the node. The name is removed here, because the sentence of the
  // original controller already contains it.
  const failed = rollout.reason?.message.replace(/^\S+: (?=Job )/, '') ?? '';
  const failure = rollout.reason?.code === 'Aborted' ? message : failed;
  const [first] = targetsIn(rollout, 'failed');
  if (first) {
    const later = failure === '' ? undefined : afterJob(rollout.reason?.code);
    const said = failure === '' ? failureOn(first.name) : failure;
    return open(later ?? 'JobFailed', withFurther(rollout, said));
  }
  // The original uses the reason ValidationFailed for a Job that cannot be created.
  if (targetsIn(rollout, 'unsupported').length > 0)
    return open('ValidationFailed', withFurther(rollout, failure));
  if (!sameJson(applying, plan.status?.applying ?? [])) return open('SyncJob');
  const isOpen = isOpenPlan(rollout);
  if (isOpen && rollout.blocked && !isOpenAt(plan, now))
    return open('Waiting', 'current time is not within configured window');
  const isNew = status !== 'False' || plan.status?.latestHash !== rollout.id || PASSING.has(reason);
  return open(isNew ? 'Resolved' : reason);
}

/** Returns the message with the names of the failed nodes that it is not about; the same message if it names no node. */
function withFurther(rollout: Rollout, message: string): string {
  const [, named] = / on Node (\S+):/.exec(message) ?? /^(\S+?):? /.exec(message) ?? [];
  const failed = targetsIn(rollout, 'failed', 'unsupported').map(({ name }) => name);
  const further = failed.filter((name) => name !== named);
  return further.length === failed.length ? message : withFurtherNodes(message, further);
}

/** The reasons of the condition `Complete` that are about failed nodes. */
export const FAILURE_REASONS: ReadonlySet<string | undefined> = new Set<string | undefined>([
  'JobFailed',
  'ValidationFailed',
  ...AFTER_JOB,
]);

function isOpenAt({ spec }: CattlePlan, now: number): boolean {
  const windows = spec?.window ? windowsOf(spec.window) : [];
  return typeof windows === 'string' || openAt({ windows, blackouts: [] }, now).open;
}

/**
 * Returns the conditions of Refit itself that are true. After the abort annotation was removed, the condition of the
 * abort is left out.
 */
function ownConditions(
  rollout: Rollout,
  plan: CattlePlan,
  { reason: why }: ConditionUpdate,
  { gate = 'Gate', ...versions }: VersionConfig & { readonly gate?: string },
): ConditionUpdate[] {
  const { phase, reason, blocked } = rollout;
  const failed = targetsIn(rollout, 'failed', 'unsupported');
  const waits = `a slot is free, but no node may start yet; run: refit why --plan cattle/${keyOf(plan)}`;
  const isAborted = phase === 'failed' && reason?.code === 'Aborted';
  const isEmpty = phase === 'done' && withStages(rollout).length === 0;
  const own: ConditionUpdate[] = [];
  const add = (type: string, because: string, message: string): void =>
    void own.push({ type, status: 'True', reason: because, message });
  if (isEmpty) add(EMPTY_TYPE, NOTHING_DONE.code, NOTHING_DONE.message);
  // The two conditions give the same reason. If `Complete` is about something else, the known reason stays.
  const known = conditionOf(plan, FAILED_TYPE)?.reason ?? 'JobFailed';
  const cause = FAILURE_REASONS.has(why) ? why : known;
  if (failed.length > 0) add(FAILED_TYPE, cause, failuresText(failed, plan));
  // When a rollout has ended, it does not wait for anything any more.
  const isOver = !isOpenPlan({ phase });
  if (blocked && !isOver) add(WAITING_TYPE, gate, waits);
  if (isAborted) add(ABORTED_TYPE, 'Aborted', reason.message);
  const told = versionCondition(plan, rollout.stages[0]?.version ?? '', versions);
  return told ? [...own, told] : own;
}
