/** Says what the user can do about a plan that failed, was refused or was aborted, in the words of its dialect. */
import type { Wait } from '../engine/model/decision.ts';
import { planReference } from '../engine/model/plan-reference.ts';
import { actBeforeRetry, type ReasonCode } from '../engine/model/reasons.ts';
import { budgetsIn } from '../engine/reasons/blocking-budget.ts';
import { capitalized, listed } from '../util/phrases.ts';
import type { ShownPlan, TargetJson } from './status/json-form.ts';

type NamedPlan = Pick<ShownPlan, 'dialect' | 'namespace' | 'name'>;

/** Returns the name by which a command finds the plan. */
function nameFor(plan: NamedPlan): string {
  return plan.namespace === undefined ? plan.name : planReference(plan);
}

/**
 * Returns a sentence for each of the health checks because of which nodes failed. The plan that goes back waits for
 * these checks, too, even if only the release that the nodes leave makes them fail.
 */
export function awaitedChecks(plan: NamedPlan, checks: readonly string[]): string[] {
  return checks.map(
    (check) =>
      `No node goes back while the health check ${check} fails. If only the release makes it fail, run this as soon as the plan that goes back waits for it: refit accept ${nameFor(plan)} --check ${check}`,
  );
}

function fixOfEdited(plan: ShownPlan): string {
  const { advice } = plan.texts;
  if (plan.startsAgain === true)
    return 'Nothing. The leader starts the edited plan again, as edits.afterEnd of its policy says. If no leader runs now, the next one starts it.';
  if (plan.rollsBackRun !== undefined)
    return `The edit is not carried out, because the plan had ended. To go back as recorded: ${advice.again(plan)}.`;
  if (plan.updateConfig !== undefined)
    return `The edit is not carried out, because the plan had ended. UpdateConfig ${plan.updateConfig} created this Plan, so change spec.planSpec of the UpdateConfig, if it still exists. To upgrade the nodes again: ${advice.again(plan)}.`;
  const failed = plan.stages
    .flatMap(({ targets }) => targets)
    .filter(({ phase }) => phase === 'failed');
  const [first] = failed;
  if (first === undefined || advice.retry === undefined)
    return `The edit is not carried out, because the plan had ended. To run it: ${advice.startOver(plan)}.`;
  const command = `refit retry ${first.name}${planFlag(plan)}`;
  return `The edit is not carried out, because the plan had ended. To continue with the edit, run: ${command}. To run it for all nodes: ${advice.startOver(plan)}.`;
}

/**
 * The reasons of a failure that is over once the node runs the version. Such a node was too slow, or somebody else has
 * upgraded it since.
 */
const OVER_ONCE_THERE: ReadonlySet<ReasonCode> = new Set<ReasonCode>([
  'DeadlineExceeded',
  'DrainTooLong',
  'TargetFailed',
  'TargetRefused',
  'TargetGone',
]);

/** Returns true for a failed target that needs nothing, because it runs the version now and no check refused it. */
export function isMended({ phase, isThere, failureReason }: TargetJson): boolean {
  if (phase !== 'failed' || isThere !== true || failureReason === undefined) return false;
  return OVER_ONCE_THERE.has(failureReason);
}

/**
 * Returns true for a target that runs the version and failed nevertheless: a health check, a hook or the node itself
 * was not good afterwards. So the release may be bad. If it is not known why the target failed, it counts as such a
 * target.
 */
function failedAfterUpgrade(target: TargetJson): boolean {
  return target.phase === 'failed' && target.isThere === true && !isMended(target);
}

/**
 * Returns what the user can do about an aborted plan. If something refused upgraded nodes, the release may be bad, so
 * the user learns how to leave it.
 */
function fixOfAborted(plan: ShownPlan): string {
  const anew = `Aborted. To start again: ${plan.texts.advice.startOver(plan)}.`;
  const targets = plan.stages.flatMap((stage) => stage.targets);
  const isLeft = plan.phase !== 'running' && plan.rollsBackRun === undefined;
  return isLeft && targets.some(failedAfterUpgrade)
    ? `${anew} To take the upgraded nodes back: ${goBackOf(plan)}`
    : anew;
}

/** Returns how the user takes the upgraded nodes back: a clause, a full stop, and sentences about the checks that then wait. */
function goBackOf(plan: ShownPlan): string {
  const clause = `${plan.texts.advice.goBack(plan)}.`;
  return [clause, ...awaitedChecks(plan, plan.failedChecks ?? []).map((line) => `${line}.`)].join(
    ' ',
  );
}

/**
 * Returns what the user can do about a plan that was aborted, failed or refused, or that no longer
 * matches its nodes.
 */
export function fixOf(plan: ShownPlan): string {
  const { phase, abort, stages, remedy = 'Fix the cause.' } = plan;
  const { advice } = plan.texts;
  const { corrected, retry } = advice;
  const startOver = advice.startOver(plan);
  const again = advice.again(plan);
  if (plan.reasonCode === 'MixedVersions')
    return `The nodes have different versions. To bring all of them to the version of the plan: ${startOver}. To go back: ${plan.texts.advice.goBack(plan)}.`;
  if (phase === 'edited') return fixOfEdited(plan);
  if (abort !== undefined) return fixOfAborted(plan);
  if (phase === 'differs')
    return `The plan has ended, but its nodes were changed afterwards. Find out who changed them; to upgrade them again: ${again}.`;
  if (phase === 'empty' && corrected !== undefined)
    return 'No node was upgraded. Correct the nodeSelector of the Plan, or its concurrency, which must be at least 1. The Plan then continues by itself.';
  if (phase === 'empty')
    return `No node was upgraded. Correct the nodes or selectors of the Plan, then: ${again}.`;
  if (phase === 'invalid' && corrected !== undefined) return `Not started. ${corrected}`;
  if (phase === 'invalid') return `Refused. ${remedy} Then: ${again}.`;
  const all = stages
    .flatMap(({ targets }) => targets)
    .filter((target) => target.phase === 'failed');
  const open = all.filter((target) => !isMended(target));
  const retries = retriesOf(plan);
  const failed = open.filter(({ name }) => !retries.has(name));
  if (open.length > 0 && failed.length === 0) return fixOfRetried(plan, open, retries);
  if (failed.length === 0 && all.length > 0) {
    const others = stages.some(({ targets }) =>
      targets.some((target) => target.phase === 'pending'),
    );
    const rest = others ? ` For the other nodes: ${startOver}.` : '';
    return `Nothing to fix: ${namesOf(all)} ${all.length === 1 ? 'runs' : 'run'} the version now.${rest}`;
  }
  const refused = failed.filter(failedAfterUpgrade);
  if (refused.length > 0) return fixOfRefusedRelease(plan, refused, failed);
  if (retry === undefined || failed.length === 0) return `Failed. ${remedy} Then: ${again}.`;
  const names = namesOf(failed);
  const retried = retryOf(plan, failed);
  if (!failed.every(({ gone }) => gone === true))
    return `Failed. ${repairOf(failed) ?? `Fix the cause (${retry.causes})`}, then ${retried}`;
  const back = failed.length === 1 ? `When ${names} is` : 'When they are';
  const without =
    plan.rollsBackRun === undefined && plan.updateConfig === undefined
      ? 'delete the Plan and apply one without the missing nodes'
      : again;
  return `Failed. ${back} back, ${retried}. Or ${without}.`;
}

/** Returns the waits of the failed targets that Refit tries again by itself, by the names of the targets. */
function retriesOf({ waits }: Pick<ShownPlan, 'waits'>): ReadonlyMap<string, Wait> {
  return new Map(
    waits.flatMap((wait) =>
      wait.gate === 'retry' && wait.target !== undefined ? [[wait.target, wait] as const] : [],
    ),
  );
}

/** Returns what the user can do about failed targets that Refit tries again by itself: end the cause before that. */
function fixOfRetried(
  plan: ShownPlan,
  failed: readonly TargetJson[],
  retries: ReadonlyMap<string, Wait>,
): string {
  const isOne = failed.length === 1;
  const times = failed.flatMap(({ name }) => retries.get(name)?.until ?? []);
  const [first] = times.toSorted((a, b) => Date.parse(a) - Date.parse(b));
  const when = first === undefined ? '' : `, ${isOne ? '' : 'the first '}at ${first}`;
  const cause =
    repairOf(failed) ?? `Fix the cause (${plan.texts.advice.retry?.causes ?? 'the node'})`;
  return `Refit tries ${namesOf(failed)} again by itself${when}. ${cause} before that. To try ${isOne ? 'it' : 'them'} sooner, ${retryOf(plan, failed)}`;
}

/**
 * Returns the instruction that ends the cause of the failures; undefined if the targets failed for different reasons, or
 * if only the node itself knows the cause.
 */
function repairOf(failed: readonly TargetJson[]): string | undefined {
  const codes = new Set(failed.map(({ failureReason }) => failureReason));
  const [code] = codes;
  // The agent or the Job reported this failure, so the dialect says where the user finds the cause.
  if (codes.size !== 1 || code === undefined || code === 'TargetFailed') return undefined;
  const budgets = new Set(failed.flatMap(({ failure = '' }) => budgetsIn(failure)));
  if (code === 'DrainTooLong' && budgets.size > 0) return letEvict([...budgets]);
  const act = actBeforeRetry(code);
  return act && capitalized(act);
}

/** Returns the instruction for a drain that PodDisruptionBudgets blocked until its deadline. */
function letEvict(budgets: readonly string[]): string {
  const which = `PodDisruptionBudget${budgets.length === 1 ? '' : 's'} ${listed(budgets)}`;
  return `Let ${which} allow an eviction: run more replicas, make its pods healthy, or change the budget; or raise \`deadlines.drain\` in the policy if its operator needs more time`;
}

/** Returns a clause that says how the user tries the failed targets again. */
function retryOf(plan: ShownPlan, failed: readonly TargetJson[]): string {
  const { advice } = plan.texts;
  if (advice.retry === undefined) return advice.again(plan);
  const names = namesOf(failed);
  const command =
    failed.length === 1
      ? `run: refit retry ${names}`
      : `run for each of ${names}: refit retry NODE`;
  return `${command}${planFlag(plan)}`;
}

/**
 * Returns what the user can do if nodes run the version and something refused them afterwards. Only the user knows
 * whether the release is the cause. A plan that already goes back has no release to leave.
 */
function fixOfRefusedRelease(
  plan: ShownPlan,
  refused: readonly TargetJson[],
  failed: readonly TargetJson[],
): string {
  const run = refused.length === 1 ? 'runs' : 'run';
  const found = `Failed. ${namesOf(refused)} ${run} the version, but failed afterwards.`;
  const retried = `repair it, then ${retryOf(plan, failed)}`;
  if (plan.rollsBackRun !== undefined) return `${found} Find the cause: ${retried}`;
  return `${found} If the release is bad: ${goBackOf(plan)} If the cause is elsewhere: ${retried}`;
}

/**
 * Returns the option that names this plan to a command, with a space before it; empty if the
 * command finds the plan without it. A plan in a namespace is always named, because such a
 * namespace often has several plans. Any other plan is named only if `hasOthers` is true, which
 * means that the cluster has more than one plan.
 */
export function planFlag(
  { dialect, namespace, name }: Pick<ShownPlan, 'dialect' | 'namespace' | 'name'>,
  { hasOthers = false }: { readonly hasOthers?: boolean } = {},
): string {
  const isNamed = hasOthers || namespace !== undefined;
  return isNamed ? ` --plan ${planReference({ dialect, namespace, name })}` : '';
}

function namesOf(targets: readonly TargetJson[]): string {
  return listed(targets.map(({ name }) => name));
}
