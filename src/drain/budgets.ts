/** What blocks a drain: PodDisruptionBudgets, now or for ever as they are, and pods that do not terminate. */
import { keyOf, type Pod, type PodDisruptionBudget, readyCondition } from '../kube/resources.ts';
import { matchesLabels } from '../kube/selectors.ts';
import { listed } from '../util/phrases.ts';
import { controllerOf } from './pods.ts';

export interface BlockingBudget {
  /** `namespace/name`. */
  readonly budget: string;
  /** `namespace/name` of the pods that it blocks, in order. */
  readonly pods: readonly string[];
  readonly reason: string;
}

/** What ends a wait for a PodDisruptionBudget, as a clause that follows "when". */
export const BUDGET_ENDS =
  'the budget allows the eviction: run more replicas, or change the budget';

export function describeBlockingBudget({ budget, pods, reason }: BlockingBudget): string {
  return blockedByBudget(budget, nameSome(pods), reason);
}

/** The budgets that block the eviction of `pods` even when all their pods are healthy, not only at this moment. */
export function hopelessBudgets(
  pods: readonly Pod[],
  budgets: readonly PodDisruptionBudget[],
): BlockingBudget[] {
  return obstaclesFor(pods, budgets, refusalOf);
}

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
) {
  const held = new Map<string, { reason: string; pods: string[] }>();
  for (const pod of pods) {
    const [first, ...others] = budgetsOf(pod, budgets);
    if (first === undefined || pod.status?.phase === 'Pending') continue;
    const reason = others.length > 0 ? refusalOfSeveral(others) : judge(first, pod);
    if (reason === undefined) continue;
    held.getOrInsert(`${keyOf(first)}\n${reason}`, { reason, pods: [] }).pods.push(keyOf(pod));
  }
  return [...held]
    .map(([key, { reason, pods }]) => ({
      budget: key.split('\n')[0] ?? '',
      pods: pods.toSorted(),
      reason,
    }))
    .toSorted((a, b) => (a.budget < b.budget ? -1 : 1));
}

/** Returns the budgets that cover the pod, in alphabetical order. */
function budgetsOf(pod: Pod, budgets: readonly PodDisruptionBudget[]): PodDisruptionBudget[] {
  return budgets
    .filter(({ metadata }) => metadata.namespace === pod.metadata.namespace)
    .filter(({ spec }) => matchesLabels(spec?.selector, pod.metadata.labels))
    .toSorted((left, right) => (keyOf(left) < keyOf(right) ? -1 : 1));
}

/** The API server refuses to evict a pod that several budgets cover. */
function refusalOfSeveral(others: readonly PodDisruptionBudget[]): string {
  const names = others.map(keyOf).join(', ');
  return `its pods are also covered by PodDisruptionBudget ${names}, and no pod under more than one can be evicted`;
}

/** Why the budget blocks the eviction of the pod even when all pods of the budget are healthy; undefined if it does not. */
function refusalOf(budget: PodDisruptionBudget, pod: Pod): string | undefined {
  if (isSpared(budget, pod)) return undefined;
  const { minAvailable, maxUnavailable } = budget.spec ?? {};
  // As in the API server: a budget without limits allows no disruption.
  if (minAvailable === undefined && maxUnavailable === undefined)
    return 'it has neither minAvailable nor maxUnavailable';
  const failure = failureOf(budget);
  if (failure !== undefined) return failure;
  return hasCurrentStatus(budget) ? refusalByStatus(budget, pod) : refusalBySpec(budget);
}

/** Why the budget blocks the eviction of the pod at this moment, in the words of the API server. */
function refusalNow(budget: PodDisruptionBudget, pod: Pod): string | undefined {
  if (isSpared(budget, pod)) return undefined;
  if (!hasCurrentStatus(budget)) return 'it is still being processed by the server';
  const { disruptionsAllowed = 0, desiredHealthy = 0, currentHealthy = 0 } = budget.status ?? {};
  return disruptionsAllowed > 0
    ? undefined
    : `it needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
}

/** A pod that is not Ready may be evicted if its budget says so, or has enough healthy pods without it. */
function isSpared({ spec, status }: PodDisruptionBudget, pod: Pod): boolean {
  if (readyCondition(pod)?.status === 'True') return false;
  if (spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true;
  const { currentHealthy = 0, desiredHealthy = 0 } = status ?? {};
  return desiredHealthy > 0 && currentHealthy >= desiredHealthy;
}

/** A disruption controller that cannot count the pods allows no disruption, and may never observe the budget. */
function failureOf({ status }: PodDisruptionBudget): string | undefined {
  const allowed = status?.conditions?.find(({ type }) => type === 'DisruptionAllowed');
  if (allowed?.reason !== 'SyncFailed') return undefined;
  const why = allowed.message ?? 'it does not say why';
  return `Kubernetes cannot tell how many pods it should cover: ${why}`;
}

function hasCurrentStatus({ metadata, status }: PodDisruptionBudget): boolean {
  return (
    status?.observedGeneration !== undefined && status.observedGeneration === metadata.generation
  );
}

/** The disruption controller knows from the workloads how many pods there should be. */
function refusalByStatus(budget: PodDisruptionBudget, pod: Pod): string | undefined {
  const { disruptionsAllowed = 0, desiredHealthy = 0, expectedPods = 0 } = budget.status ?? {};
  if (disruptionsAllowed > 0) return undefined;
  // Pods without a controller count as expected only for a plain number.
  const isCounted =
    typeof budget.spec?.minAvailable === 'number' || controllerOf(pod) !== undefined;
  if (expectedPods === 0)
    return isCounted ? undefined : `it covers pods without a controller${demandOf(budget)}`;
  if (desiredHealthy < expectedPods) return undefined;
  return `it wants ${desiredHealthy} of its ${expectedPods} pods healthy at all times${demandOf(budget)}`;
}

/** Without a status, only a demand for all pods is certain to block. */
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

/** Milliseconds past its deletion time after which a pod is overdue: kubelets need time to clean up, and clocks differ. */
const TOLERANCE_MS = 30_000;

/** Names as `namespace/name`: a node may have a hundred pods of one budget. */
export function nameSome(names: readonly string[]): string {
  return listed(names.toSorted());
}

/** Of pods that no drain evicts, but that it waits for; undefined without any. */
export function describeAwaited(pods: readonly Pod[]): string | undefined {
  return pods.length === 0 ? undefined : `waiting for ${nameSome(pods.map(keyOf))} to complete`;
}

/** `budget` as `namespace/name`. */
export function blockedByBudget(budget: string, pods: string, reason: string): string {
  return `PodDisruptionBudget ${budget} blocks ${pods}: ${reason}`;
}

/** Of terminating pods: their `deletionTimestamp` is the end of the grace period. `text` is for people. */
export function findOverdue(ending: readonly Pod[], now: number) {
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
      ? 'the kubelet has not reported its end'
      : `held by ${finalizers.join(', ')}`;
  return `${keyOf(pod)} was to end by ${deletionTimestamp} (${why})`;
}
