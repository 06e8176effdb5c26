/** Finds what blocks a drain: PodDisruptionBudgets that allow no eviction now, and pods that do not terminate. */
import { keyOf, type Pod, type PodDisruptionBudget, readyCondition } from '../kube/resources.ts';
import { matchesLabels } from '../kube/selectors.ts';
import { listed } from '../util/phrases.ts';
import { controllerOf } from './pods.ts';

export interface BlockingBudget {
  /** The name of the budget is `namespace/name`. */
  readonly budget: string;
  /** The pods that the budget blocks, as `namespace/name` in alphabetical order. */
  readonly pods: readonly string[];
  readonly reason: string;
}

/**
 * Describes what ends the wait of a node that is not cordoned for a PodDisruptionBudget. The text is a clause that follows
 * the word "when".
 */
export const BUDGET_ENDS =
  'the budget allows the eviction: change the budget, run more replicas, or set drain.zeroDisruptionBudgets to Try if an operator changes the budget when it sees the cordon';

/** Describes what ends the wait of a drain for a PodDisruptionBudget. The text is a clause that follows the word "when". */
export const CORDONED_BUDGET_ENDS =
  'the budget allows the eviction: an operator that manages the pods may change it now that the node is cordoned; otherwise change the budget, or run more replicas';

/** Returns a sentence about the PodDisruptionBudget that blocks the eviction of these pods. */
export function describeBlockingBudget({ budget, pods, reason }: BlockingBudget): string {
  return blockedByBudget(budget, nameSome(pods), reason);
}

/**
 * Returns the budgets that block the eviction of `pods` even while all pods that they cover are healthy. A budget for which
 * `isLifted` returns true blocks only pods that another budget covers, too.
 */
export function hopelessBudgets(
  pods: readonly Pod[],
  budgets: readonly PodDisruptionBudget[],
  isLifted: (budget: PodDisruptionBudget) => boolean = () => false,
): BlockingBudget[] {
  return obstaclesFor(pods, budgets, (budget, pod) =>
    isLifted(budget) ? undefined : refusalOf(budget, pod),
  );
}

/** Returns the budgets that block the eviction of `pods` at this moment, for any reason. */
export function holdingBudgets(
  pods: readonly Pod[],
  budgets: readonly PodDisruptionBudget[],
): BlockingBudget[] {
  return obstaclesFor(
    pods,
    budgets,
    (budget, pod) => refusalOf(budget, pod) ?? refusalNow(budget, pod),
  );
}

function obstaclesFor(
  pods: readonly Pod[],
  budgets: readonly PodDisruptionBudget[],
  judge: typeof refusalNow,
): BlockingBudget[] {
  const blocking = new Map<string, { reason: string; pods: string[] }>();
  for (const pod of pods) {
    const [first, ...others] = budgetsOf(pod, budgets);
    if (first === undefined || pod.status?.phase === 'Pending') continue;
    const reason = others.length > 0 ? refusalOfSeveral(others) : judge(first, pod);
    if (reason === undefined) continue;
    blocking.getOrInsert(`${keyOf(first)}\n${reason}`, { reason, pods: [] }).pods.push(keyOf(pod));
  }
  return [...blocking]
    .map(([key, { reason, pods }]) => ({
      budget: key.split('\n')[0] ?? '',
      pods: pods.toSorted(),
      reason,
    }))
    .toSorted((a, b) => (a.budget < b.budget ? -1 : 1));
}

/** Returns the budgets that cover the pod, in alphabetical order. */
export function budgetsOf(
  pod: Pod,
  budgets: readonly PodDisruptionBudget[],
): PodDisruptionBudget[] {
  return budgets
    .filter(({ metadata }) => metadata.namespace === pod.metadata.namespace)
    .filter(({ spec }) => matchesLabels(spec?.selector, pod.metadata.labels))
    .toSorted((left, right) => (keyOf(left) < keyOf(right) ? -1 : 1));
}

/** Returns the reason why a pod that several budgets cover cannot be evicted: the API server never evicts such a pod. */
function refusalOfSeveral(others: readonly PodDisruptionBudget[]): string {
  const names = others.map(keyOf).join(', ');
  return `its pods are also covered by PodDisruptionBudget ${names}, and Kubernetes cannot evict a pod that more than one budget covers`;
}

/**
 * Returns why the budget blocks the eviction of the pod even when all pods that the budget covers are healthy. Returns
 * undefined if the budget does not block the eviction.
 */
function refusalOf(budget: PodDisruptionBudget, pod: Pod): string | undefined {
  if (isSpared(budget, pod)) return undefined;
  const { minAvailable, maxUnavailable } = budget.spec ?? {};
  // A budget without `minAvailable` and `maxUnavailable` allows no disruption, as in the API server.
  if (minAvailable === undefined && maxUnavailable === undefined)
    return 'it has neither minAvailable nor maxUnavailable';
  const failure = failureOf(budget);
  if (failure !== undefined) return failure;
  return hasCurrentStatus(budget) ? refusalByStatus(budget, pod) : refusalBySpec(budget);
}

/**
 * Returns why the budget blocks the eviction of the pod at this moment, in the words of the API server. Returns
 * undefined if the budget does not block the eviction.
 */
function refusalNow(budget: PodDisruptionBudget, pod: Pod): string | undefined {
  if (isSpared(budget, pod)) return undefined;
  if (!hasCurrentStatus(budget)) return 'it is still being processed by the server';
  const { disruptionsAllowed = 0, desiredHealthy = 0, currentHealthy = 0 } = budget.status ?? {};
  return disruptionsAllowed > 0
    ? undefined
    : `it needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
}

/**
 * Returns true if a pod that is not Ready may be evicted, because its budget always allows that, or because the budget
 * has enough healthy pods without this pod.
 */
function isSpared({ spec, status }: PodDisruptionBudget, pod: Pod): boolean {
  if (readyCondition(pod)?.status === 'True') return false;
  if (spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true;
  const { currentHealthy = 0, desiredHealthy = 0 } = status ?? {};
  return desiredHealthy > 0 && currentHealthy >= desiredHealthy;
}

/**
 * Returns why the disruption controller cannot count the pods of the budget. In that case the budget allows no
 * disruption, and the controller may never update the status.
 */
function failureOf({ status }: PodDisruptionBudget): string | undefined {
  const allowed = status?.conditions?.find(({ type }) => type === 'DisruptionAllowed');
  if (allowed?.reason !== 'SyncFailed') return undefined;
  const why = allowed.message ?? 'its condition gives no reason';
  return `Kubernetes cannot count the pods that it should cover: ${why}`;
}

function hasCurrentStatus({ metadata, status }: PodDisruptionBudget): boolean {
  return (
    status?.observedGeneration !== undefined && status.observedGeneration === metadata.generation
  );
}

/**
 * Returns the reason according to the status of the budget. The disruption controller writes the number of expected
 * pods to the status. It reads that number from the workloads.
 */
function refusalByStatus(budget: PodDisruptionBudget, pod: Pod): string | undefined {
  const { disruptionsAllowed = 0, desiredHealthy = 0, expectedPods = 0 } = budget.status ?? {};
  if (disruptionsAllowed > 0) return undefined;
  // The disruption controller counts pods without a controller as expected only if minAvailable is a plain number.
  const isCounted =
    typeof budget.spec?.minAvailable === 'number' || controllerOf(pod) !== undefined;
  if (expectedPods === 0)
    return isCounted ? undefined : `it covers pods without a controller${demandOf(budget)}`;
  if (desiredHealthy < expectedPods) return undefined;
  return `it wants ${desiredHealthy} of its ${expectedPods} pods healthy at all times${demandOf(budget)}`;
}

/**
 * Checks the spec of a budget that has no current status. Returns why the budget blocks evictions; undefined if the
 * budget does not require that all pods are healthy.
 */
function refusalBySpec(budget: PodDisruptionBudget): string | undefined {
  const { minAvailable, maxUnavailable } = budget.spec ?? {};
  const never = maxUnavailable === 0 || maxUnavailable === '0%' || minAvailable === '100%';
  return never ? `it wants all of its pods healthy at all times${demandOf(budget)}` : undefined;
}

function demandOf({ spec: { minAvailable, maxUnavailable } = {} }: PodDisruptionBudget): string {
  return maxUnavailable === undefined
    ? ` (minAvailable: ${minAvailable})`
    : ` (maxUnavailable: ${maxUnavailable})`;
}

/**
 * A pod is overdue if it still exists this number of milliseconds after its deletion time. Kubelets need time to clean
 * up, and clocks differ.
 */
const TOLERANCE_MS = 30_000;

/**
 * Returns the first names in alphabetical order and counts the others, because one budget may cover a hundred pods of a
 * node.
 */
export function nameSome(names: readonly string[]): string {
  return listed(names.toSorted());
}

/**
 * Describes the pods that a drain does not evict, but for which it waits. Returns undefined if there are no such pods.
 * `until` is the time at which the drain evicts the pods nevertheless; if it is absent, the drain waits without a
 * limit.
 */
export function describeAwaited(pods: readonly Pod[], until?: string): string | undefined {
  if (pods.length === 0) return undefined;
  const wait = `waiting for ${nameSome(pods.map(keyOf))} to complete`;
  return until === undefined
    ? wait
    : `${wait}; at ${until}, the drain evicts the pods that have not completed`;
}

/** Returns the sentence that says which budget blocks which pods. The name of the budget is `namespace/name`. */
export function blockedByBudget(budget: string, pods: string, reason: string): string {
  return `PodDisruptionBudget ${budget} blocks ${pods}: ${reason}`;
}

export interface OverduePods {
  /** A text for people that names the overdue pods; undefined if no pod is overdue. */
  readonly text: string | undefined;
  /** Milliseconds until the next terminating pod is overdue; undefined if no other pod is terminating. */
  readonly nextInMs: number | undefined;
}

/**
 * Finds the terminating pods whose `deletionTimestamp`, the end of the grace period, has passed. `now` is in
 * milliseconds since the Unix epoch.
 */
export function findOverdue(ending: readonly Pod[], now: number): OverduePods {
  const leftMs = ({ metadata }: Pod) =>
    Date.parse(metadata.deletionTimestamp ?? '') + TOLERANCE_MS - now;
  const late = ending.filter((pod) => leftMs(pod) <= 0).map(describeOverdue);
  const rest = ending.map(leftMs).filter((ms) => ms > 0);
  return {
    text: late.length === 0 ? undefined : late.toSorted().join('; '),
    nextInMs: rest.length === 0 ? undefined : Math.min(...rest),
  };
}

function describeOverdue(pod: Pod): string {
  const { deletionTimestamp, finalizers = [] } = pod.metadata;
  const why =
    finalizers.length === 0
      ? 'the kubelet has not reported that it ended'
      : `it waits for finalizers: ${finalizers.join(', ')}`;
  return `${keyOf(pod)} should have ended by ${deletionTimestamp} (${why})`;
}
