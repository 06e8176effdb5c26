/**
 * Lets the leader drain a node. The Job has no containers that cordon or drain, and is held until its node is empty.
 */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cordonOwner, type Owner, readOwner } from '../../../drain/cordon-marks.ts';
import { rulesAmong } from '../../../drain/pods.ts';
import type { RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import type { Job, Node, ObjectMeta } from '../../../kube/resources.ts';
import { selectorFault, selectorText } from '../../../kube/selectors.ts';
import { parseGoDuration } from '../../../util/duration.ts';
import { deadlineOf, type JobSettings } from './config.ts';
import { CONTROLLER_LABEL, HELD_ANNOTATION } from './names.ts';

/**
 * Returns true if the leader cordons and drains the nodes of the Plan; false if the Job does so. The Job does so if the
 * settings say it, or if the drain of the Plan has an option that only kubectl supports.
 */
export function leaderDrains(
  plan: CattlePlan,
  { drainInJob }: Pick<JobSettings, 'drainInJob'>,
): boolean {
  const {
    disableEviction,
    skipWaitForDeleteTimeout = 0,
    ignoreDaemonSets,
  } = plan.spec?.drain ?? {};
  const isPossible =
    disableEviction !== true && skipWaitForDeleteTimeout <= 0 && ignoreDaemonSets !== false;
  return !drainInJob && cordons(plan) && isPossible;
}

export function cordons({ spec }: CattlePlan): boolean {
  return spec?.cordon === true || spec?.drain !== undefined;
}

/**
 * Returns true for a Job that waits for the leader's drain. Returns false for a Job that a person
 * suspended.
 */
export function isHeld({ metadata, spec }: Job): boolean {
  return spec?.['suspend'] === true && metadata.annotations?.[HELD_ANNOTATION] !== undefined;
}

/**
 * Returns the policy with a drain that works like `kubectl drain` with the options of the Plan, whether the leader or the Job
 * drains. Budgets also block a drain with `skipWaitForDeleteTimeout`, which only shortens the wait for deleted pods. If the Plan has no
 * timeout, the drain has the same deadline as the Job.
 */
export function withDrainOf(
  plan: CattlePlan,
  policy: RolloutPolicy,
  settings: JobSettings,
): RolloutPolicy {
  const { drain, jobActiveDeadlineSecs } = plan.spec ?? {};
  const unheld = unheldBy(plan, settings);
  // If kubectl refuses the pods of DaemonSets, its drain is like no drain of Refit, so nothing is said about it.
  if (!cordons(plan) || drain?.ignoreDaemonSets === false)
    return { ...policy, drain: { ...policy.drain, enabled: false, ...unheld } };
  // If the pod selector is invalid, the nodes wait until a person corrects it, because a drain without the selector
  // would evict more pods.
  const isInvalid = selectorFault(drain?.podSelector) !== undefined;
  const isByJob = !leaderDrains(plan, settings);
  if (isInvalid && !isByJob)
    return {
      ...policy,
      heldBy: `the drain of Plan ${plan.metadata.name}, whose spec.drain.podSelector is invalid,`,
    };
  const {
    deleteLocalData = true,
    deleteEmptydirData = true,
    gracePeriod = -1,
    force = false,
    timeout,
  } = drain ?? {};
  const limit =
    typeof timeout === 'number'
      ? timeout
      : (parseGoDuration(typeof timeout === 'string' ? timeout : '') ?? 0);
  const ofJob = (deadlineOf(jobActiveDeadlineSecs, settings) ?? Number.POSITIVE_INFINITY) * 1000;
  const drainMs = limit > 0 ? limit / 1e6 : ofJob;
  const options = {
    localData: deleteLocalData && deleteEmptydirData ? 'evict' : 'refuse',
    unmanagedPods: force ? 'evict' : 'refuse',
    podSelector: selectorText((!isInvalid && drain?.podSelector) || {}, `!${CONTROLLER_LABEL}`),
    ...(gracePeriod < 0 ? {} : { gracePeriodSeconds: gracePeriod }),
    ...(drain?.disableEviction === true ? { deletes: true } : {}),
    fields: {
      of: 'the Plan',
      localData: `spec.drain.${deleteLocalData ? 'deleteEmptydirData' : 'deleteLocalData'}: true`,
      unmanagedPods: 'spec.drain.force: true',
    },
    ...rulesAmong(policy.drain.options),
  } as const;
  const who = { enabled: !isByJob, byWork: isByJob, ...unheld };
  // A Job does not wait for budgets before it cordons its node, whatever the policy says.
  const waits = isByJob ? { waitsForBudgets: false } : {};
  return {
    ...policy,
    stepDeadlines: { ...policy.stepDeadlines, drain: drainMs },
    drain: {
      ...policy.drain,
      ...who,
      ...waits,
      cordonOnly: drain === undefined,
      options,
      softTaint: false,
    },
  };
}

/**
 * Returns an empty object if the Jobs of the Plan wait for the leader's drain. Otherwise returns an object whose
 * `unheld` says whether the nodes of the Plan are drained by their Jobs.
 */
function unheldBy(plan: CattlePlan, settings: JobSettings): Pick<RolloutPolicy['drain'], 'unheld'> {
  if (leaderDrains(plan, settings)) return {};
  return { unheld: plan.spec?.drain === undefined ? 'withoutDrain' : 'withDrain' };
}

/**
 * Returns the owner that the leader writes into a cordon for the Plan. The kind of this owner differs from the kind for
 * Plans of k0s. The owner contains the namespace, because each namespace has its own controller. The attempt is the
 * creation time of the Plan, because a Plan does not record when a node started.
 */
export function markOf({ namespace = '', uid = '', creationTimestamp = '' }: ObjectMeta): Owner {
  return { kind: CORDON_KIND, plan: `${namespace}/${uid}`, attempt: creationTimestamp };
}

export const CORDON_KIND = 'CattlePlan';

/** Returns true if the leader cordoned the node for the plan. */
export function isCordonOf(node: Node, plan: CattlePlan): boolean {
  return readOwner(cordonOwner(node) ?? '')?.plan === markOf(plan.metadata).plan;
}
