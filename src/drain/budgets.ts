/** Owns finding the PodDisruptionBudgets that can never let a pod go as they stand: those that a drain would wait for in vain. */
import { matchesLabels } from '../kube/label-selector.ts';
import { keyOf } from '../kube/object-key.ts';
import type { Pod, PodDisruptionBudget } from '../kube/types.ts';
import { nameSome } from './pod-names.ts';
import { controllerOf } from './pods.ts';

export interface BlockingBudget {
  /** `namespace/name`. */
  readonly budget: string;
  /** `namespace/name` of those that it holds, in order. */
  readonly pods: readonly string[];
  /** One sentence that says what the budget asks for. */
  readonly reason: string;
}

/** For people, in the words of a drain that is held up by it. */
export function describeBlockingBudget({ budget, pods, reason }: BlockingBudget): string {
  return `PodDisruptionBudget ${budget} holds ${nameSome(pods)}: ${reason}`;
}

/**
 * What stands in the way of the eviction of `pods` even when all pods of a budget are healthy. A budget that has nothing
 * to spare only now is none of these: it may have later.
 */
export function hopelessBudgets(pods: readonly Pod[], budgets: readonly PodDisruptionBudget[]): BlockingBudget[] {
  return obstaclesFor(pods, budgets, refusalOf);
}

/** What stands in the way of the eviction of `pods` at this moment, whatever becomes of it. */
export function holdingBudgets(pods: readonly Pod[], budgets: readonly PodDisruptionBudget[]): BlockingBudget[] {
  return obstaclesFor(pods, budgets, (budget, pod) => refusalOf(budget, pod) ?? refusalNow(budget, pod));
}

type Judge = (budget: PodDisruptionBudget, pod: Pod) => string | undefined;

function obstaclesFor(pods: readonly Pod[], budgets: readonly PodDisruptionBudget[], judge: Judge): BlockingBudget[] {
  const held = new Map<string, { reason: string; pods: string[] }>();
  for (const pod of pods) {
    const guards = budgets.filter((budget) => guardsPod(budget, pod)).toSorted(byKey);
    const [first] = guards;
    if (first === undefined || pod.status?.phase === 'Pending') continue;
    const reason = guards.length > 1 ? tooManyBudgets(guards) : judge(first, pod);
    if (reason === undefined) continue;
    const key = `${keyOf(first)}\n${reason}`;
    held.set(key, { reason, pods: [...(held.get(key)?.pods ?? []), keyOf(pod)] });
  }
  return [...held]
    .map(([key, { reason, pods }]) => ({ budget: key.split('\n')[0] ?? '', pods: pods.toSorted(), reason }))
    .toSorted((a, b) => (a.budget < b.budget ? -1 : 1));
}

function guardsPod({ metadata, spec }: PodDisruptionBudget, pod: Pod): boolean {
  return metadata.namespace === pod.metadata.namespace && matchesLabels(spec?.selector, pod.metadata.labels);
}

/** The API server does not weigh several budgets against each other: it answers each eviction with an error. */
function tooManyBudgets(guards: readonly PodDisruptionBudget[]): string {
  const [, ...others] = guards.map(keyOf);
  return `its pods are also covered by PodDisruptionBudget ${others.join(', ')}, and no pod under more than one can be evicted`;
}

function refusalOf(budget: PodDisruptionBudget, pod: Pod): string | undefined {
  if (isSpared(budget, pod)) return undefined;
  const { minAvailable, maxUnavailable } = budget.spec ?? {};
  // As API servers have it, who asks for nothing allows nothing.
  if (minAvailable === undefined && maxUnavailable === undefined)
    return 'it has neither minAvailable nor maxUnavailable';
  return failureOf(budget) ?? (hasCurrentStatus(budget) ? refusalByStatus(budget, pod) : refusalBySpec(budget));
}

/** In the words in which API servers refuse an eviction. */
function refusalNow(budget: PodDisruptionBudget, pod: Pod): string | undefined {
  if (isSpared(budget, pod)) return undefined;
  if (!hasCurrentStatus(budget)) return 'it is still being processed by the server';
  const { disruptionsAllowed = 0, desiredHealthy = 0, currentHealthy = 0 } = budget.status ?? {};
  return disruptionsAllowed > 0
    ? undefined
    : `it needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
}

/** A pod that is not Ready may go where its budget says so, or has the healthy pods it needs without this one. */
function isSpared({ spec, status }: PodDisruptionBudget, pod: Pod): boolean {
  if (pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')) return false;
  if (spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true;
  const { currentHealthy = 0, desiredHealthy = 0 } = status ?? {};
  return desiredHealthy > 0 && currentHealthy >= desiredHealthy;
}

/** Where the disruption controller cannot count, it allows nothing; it may never have come to observe the budget then. */
function failureOf({ status }: PodDisruptionBudget): string | undefined {
  const failed = status?.conditions?.find(
    ({ type, reason }) => type === 'DisruptionAllowed' && reason === 'SyncFailed',
  );
  return failed && `Kubernetes cannot tell how many pods it should cover: ${failed.message ?? 'it does not say why'}`;
}

/** Whether the disruption controller has seen the budget as it is now. */
function hasCurrentStatus({ metadata, status }: PodDisruptionBudget): boolean {
  return status?.observedGeneration !== undefined && status.observedGeneration === metadata.generation;
}

/** The controller of budgets knows from the workloads how many pods there should be; we only read what it found. */
function refusalByStatus(budget: PodDisruptionBudget, pod: Pod): string | undefined {
  const { disruptionsAllowed = 0, desiredHealthy = 0, expectedPods = 0 } = budget.status ?? {};
  if (disruptionsAllowed > 0) return undefined;
  if (expectedPods === 0)
    return isCounted(budget, pod) ? undefined : `it covers pods without a controller${demandOf(budget)}`;
  if (desiredHealthy < expectedPods) return undefined;
  return `it wants ${desiredHealthy} of its ${expectedPods} pods healthy at all times${demandOf(budget)}`;
}

/** Whether the pod is one of those that are expected: only a plain number counts pods that no workload asks for. */
function isCounted({ spec }: PodDisruptionBudget, pod: Pod): boolean {
  return typeof spec?.minAvailable === 'number' || controllerOf(pod) !== undefined;
}

/** Without a word from the controller only what holds for every number of pods is certain. */
function refusalBySpec(budget: PodDisruptionBudget): string | undefined {
  const { minAvailable, maxUnavailable } = budget.spec ?? {};
  const never = maxUnavailable === 0 || maxUnavailable === '0%' || minAvailable === '100%';
  return never ? `it wants all of its pods healthy at all times${demandOf(budget)}` : undefined;
}

function demandOf({ spec: { minAvailable, maxUnavailable } = {} }: PodDisruptionBudget): string {
  return maxUnavailable === undefined ? ` (minAvailable: ${minAvailable})` : ` (maxUnavailable: ${maxUnavailable})`;
}

function byKey(a: PodDisruptionBudget, b: PodDisruptionBudget): number {
  return keyOf(a) < keyOf(b) ? -1 : 1;
}
