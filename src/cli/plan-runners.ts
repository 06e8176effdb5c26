/** Describes for each dialect which process carries plans out, and what the user can do after a failure. */
import { HOST_DEADLINE_MS } from '../dialects/kubeadm/plan/kubeadm-dialect.ts';
import { planReference } from '../engine/model/plan-reference.ts';
import type { ReasonCode } from '../engine/model/reasons.ts';
import { isHookFailure } from '../engine/reasons/hook.ts';
import { formatDuration } from '../util/duration.ts';
import { ownMember } from '../util/own-member.ts';
import { listed } from '../util/phrases.ts';
import type { PlanView, TargetView } from './status/view.ts';

export interface PlanRunner {
  readonly name: string;
  /**
   * The name by which the output lines about changes refer to the plan. Set only for plans whose object is just a
   * record. For every other plan, the lines use the kind and the name of the plan's object.
   */
  readonly subject?: string;
  /**
   * A clause that follows "when" and says when a node in progress fails. It is used for a step
   * without a deadline of its own.
   */
  readonly limit: string;
  /** A clause that says how the user runs the whole plan again, also after an abort. */
  readonly startOver: string;
  /** A clause that says what the user does after fixing the cause of a failure that `refit retry` cannot retry. */
  readonly again: string;
  /**
   * A sentence that says what the user does about a refused plan. The field is set only for dialects whose plans continue by themselves
   * once they are corrected.
   */
  readonly corrected?: string;
  /** A clause that says where the user finds the cause of a failure. */
  readonly causes?: string;
  /** True if `refit retry` cannot try a failed node again. */
  readonly hasNoRetry?: true;
  /** Returns a clause that says how the user takes the upgraded nodes of the plan back to their earlier version. */
  readonly goBack: (plan: PlanToLeave) => string;
  /** True if the process that carries out the plans runs on the same machine as `refit status`. */
  readonly runsHere?: true;
}

type NamedPlan = Pick<PlanView, 'dialect' | 'namespace' | 'name' | 'updateConfig'>;
type PlanToLeave = NamedPlan & Pick<PlanView, 'phase'>;

const AGENT_LIMIT = 'its --target-deadline has passed since the signal';
const ANEW = 'delete the Plan and apply it again';
const KUBEADM = 'run `refit kubeadm apply` again: it continues where it stopped';
const CAPI =
  'run `refit retry` with the name of the Machine: the next call of Cluster API starts the update again';

/** Returns the name by which a command finds the plan. */
function nameFor(plan: NamedPlan): string {
  return plan.namespace === undefined ? plan.name : planReference(plan);
}

/** Returns a clause about `refit rollback`, which refuses a plan that has not ended. */
function rollBackPlan(plan: PlanToLeave): string {
  const steps = [
    // An abort comes first, because until then more nodes get the release.
    ...(plan.phase === 'running'
      ? [`run refit abort ${nameFor(plan)} and wait until the nodes in progress have finished`]
      : []),
    // The UpdateConfig would install the version again as soon as the nodes have gone back.
    ...(plan.updateConfig === undefined
      ? []
      : [`delete UpdateConfig ${plan.updateConfig}, if it still exists`]),
    `run refit rollback ${nameFor(plan)} --reason TEXT`,
  ];
  return steps.join(', then ');
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

const CONTROLLER: PlanRunner = {
  name: '`refit controller`',
  limit: AGENT_LIMIT,
  startOver: ANEW,
  again: ANEW,
  goBack: rollBackPlan,
};
const RUNNERS: Readonly<Record<string, PlanRunner>> = {
  cattle: {
    name: 'the system-upgrade-controller',
    limit: 'its Job has failed or exceeded its deadline',
    startOver: 'remove the annotation refit.upgrade.cattle.io/abort from the Plan',
    again: 'apply the Plan again with a change of its spec, or delete the failed Job',
    corrected: 'Fix the Plan, its Secret or its channel. The Plan then continues by itself.',
    causes: 'see the log of its Job while the Job exists, and the log of the kubelet on the node',
    goBack: rollBackPlan,
  },
  kubeadm: {
    name: '`refit kubeadm apply`',
    subject: 'kubeadm',
    limit: `${formatDuration(HOST_DEADLINE_MS)} have passed since it began`,
    startOver: KUBEADM,
    again: KUBEADM,
    hasNoRetry: true,
    runsHere: true,
    goBack: () =>
      'write the older patch and its binaries into the manifest, then run refit kubeadm apply --back',
  },
  capi: {
    name: '`refit capi-extension`',
    limit: AGENT_LIMIT,
    startOver: CAPI,
    again: CAPI,
    causes: 'see the log of the agent on the node, and the version of the Machine',
    goBack: () =>
      'run refit rollback machine/NAME -n NAMESPACE with the kubeconfig of the management cluster',
  },
};

export function runnerOf(dialect: string): PlanRunner {
  return ownMember(RUNNERS, dialect) ?? CONTROLLER;
}

/**
 * A clause for a Plan that an UpdateConfig created. While the UpdateConfig exists, a user who applied such a Plan again
 * would compete with it.
 */
const anewBy = (config: string): string =>
  `delete the Plan, and apply it again only if UpdateConfig ${config} does not exist any more: while it exists, it creates another Plan for the newest release of its channel (refit updates shows when)`;

/**
 * Returns the runner of the plan. If the plan rolls a run back, there is no file that a user could apply again. The
 * texts then say that `refit rollback` creates another Plan from the record of that run.
 */
export function runnerOfPlan({
  dialect,
  name,
  rollsBackRun,
  updateConfig,
}: Pick<PlanView, 'dialect' | 'name' | 'rollsBackRun' | 'updateConfig'>): PlanRunner {
  const runner = runnerOf(dialect);
  if (runner !== CONTROLLER) return runner;
  if (rollsBackRun === undefined && updateConfig !== undefined)
    return { ...runner, startOver: anewBy(updateConfig), again: anewBy(updateConfig) };
  if (rollsBackRun === undefined) return runner;
  const anew = `run refit rollback ${name} --run ${shellWord(rollsBackRun)} --reason TEXT, which replaces this Plan by another one`;
  return { ...runner, startOver: anew, again: anew };
}

/** Returns the text as one word of a shell. A user chooses the id of a run, so it may have spaces. */
function shellWord(text: string): string {
  return /^[\w.:@/+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function fixOfEdited(plan: PlanView): string {
  if (plan.rollsBackRun !== undefined)
    return `The edit is not carried out, because the plan had ended. To go back as recorded: ${runnerOfPlan(plan).again}.`;
  if (plan.updateConfig !== undefined)
    return `The edit is not carried out, because the plan had ended. UpdateConfig ${plan.updateConfig} created this Plan, so change spec.planSpec of the UpdateConfig, if it still exists. To upgrade the nodes again: ${runnerOfPlan(plan).again}.`;
  const failed = plan.stages
    .flatMap(({ targets }) => targets)
    .filter(({ phase }) => phase === 'failed');
  const [first] = failed;
  if (first === undefined || runnerOf(plan.dialect).hasNoRetry === true)
    return `The edit is not carried out, because the plan had ended. To run it: ${ANEW}.`;
  const command = `refit retry ${first.name}${planFlag(plan)}`;
  return `The edit is not carried out, because the plan had ended. To continue with the edit, run: ${command}. To run it for all nodes: ${ANEW}.`;
}

/** Returns true if the target failed because of a hook. */
function failedByHook({ failure = '', failureReason }: TargetView): boolean {
  return failureReason === 'HookFailed' || isHookFailure(failure);
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
export function isMended({ phase, isThere, failureReason }: TargetView): boolean {
  if (phase !== 'failed' || isThere !== true || failureReason === undefined) return false;
  return OVER_ONCE_THERE.has(failureReason);
}

/**
 * Returns true for a target that runs the version and failed nevertheless: a health check, a hook or the node itself
 * was not good afterwards. So the release may be bad. If it is not known why the target failed, it counts as such a
 * target.
 */
function failedAfterUpgrade(target: TargetView): boolean {
  return target.phase === 'failed' && target.isThere === true && !isMended(target);
}

/**
 * Returns what the user can do about an aborted plan. If something refused upgraded nodes, the release may be bad, so
 * the user learns how to leave it.
 */
function fixOfAborted(plan: PlanView): string {
  const anew = `Aborted. To start again: ${runnerOfPlan(plan).startOver}.`;
  const targets = plan.stages.flatMap((stage) => stage.targets);
  const isLeft = plan.phase !== 'running' && plan.rollsBackRun === undefined;
  return isLeft && targets.some(failedAfterUpgrade)
    ? `${anew} To take the upgraded nodes back: ${goBackOf(plan)}`
    : anew;
}

/** Returns how the user takes the upgraded nodes back: a clause, a full stop, and sentences about the checks that then wait. */
function goBackOf(plan: PlanView): string {
  const clause = `${runnerOf(plan.dialect).goBack(plan)}.`;
  return [clause, ...awaitedChecks(plan, plan.failedChecks ?? []).map((line) => `${line}.`)].join(
    ' ',
  );
}

/**
 * Returns what the user can do about a plan that was aborted, failed or refused, or that no longer
 * matches its nodes.
 */
export function fixOf(plan: PlanView): string {
  const { phase, abort, stages, remedy = 'Fix the cause.' } = plan;
  const {
    startOver,
    again,
    hasNoRetry,
    corrected,
    causes = 'the node, or the version, url or sha256 in the Plan',
  } = runnerOfPlan(plan);
  if (plan.reasonCode === 'MixedVersions')
    return `The nodes have different versions. To bring all of them to the version of the plan: ${startOver}. To go back: ${runnerOf(plan.dialect).goBack(plan)}.`;
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
  const failed = all.filter((target) => !isMended(target));
  if (failed.length === 0 && all.length > 0) {
    const others = stages.some(({ targets }) =>
      targets.some((target) => target.phase === 'pending'),
    );
    const rest = others ? ` For the other nodes: ${startOver}.` : '';
    return `Nothing to fix: ${namesOf(all)} ${all.length === 1 ? 'runs' : 'run'} the version now.${rest}`;
  }
  const refused = failed.filter(failedAfterUpgrade);
  if (refused.length > 0) return fixOfRefusedRelease(plan, refused, failed);
  if (hasNoRetry || failed.length === 0) return `Failed. ${remedy} Then: ${again}.`;
  const names = namesOf(failed);
  const retried = retryOf(plan, failed);
  if (failed.every(failedByHook))
    return `Failed. Repair what the hook reports, or change the hook in the policy, then ${retried}`;
  if (!failed.every(({ gone }) => gone === true))
    return `Failed. Fix the cause (${causes}), then ${retried}`;
  const back = failed.length === 1 ? `When ${names} is` : 'When they are';
  const without =
    plan.rollsBackRun === undefined && plan.updateConfig === undefined
      ? 'delete the Plan and apply one without the missing nodes'
      : again;
  return `Failed. ${back} back, ${retried}. Or ${without}.`;
}

/** Returns a clause that says how the user tries the failed targets again. */
function retryOf(plan: PlanView, failed: readonly TargetView[]): string {
  const { hasNoRetry, again } = runnerOfPlan(plan);
  if (hasNoRetry === true) return again;
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
  plan: PlanView,
  refused: readonly TargetView[],
  failed: readonly TargetView[],
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
  { dialect, namespace, name }: Pick<PlanView, 'dialect' | 'namespace' | 'name'>,
  { hasOthers = false }: { readonly hasOthers?: boolean } = {},
): string {
  const isNamed = hasOthers || namespace !== undefined;
  return isNamed ? ` --plan ${planReference({ dialect, namespace, name })}` : '';
}

function namesOf(targets: readonly TargetView[]): string {
  return listed(targets.map(({ name }) => name));
}
