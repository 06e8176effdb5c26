/** Checks whether the drain of each node can end: budgets that never allow an eviction, and pods that would be lost. */
import { type BlockingBudget, hopelessBudgets } from '../../drain/budgets.ts';
import { controllerOf, DEFAULT_DRAIN, type PodFacts, sortPods } from '../../drain/pods.ts';
import {
  daemonSets,
  keyAt,
  keyOf,
  nodes,
  type Pod,
  podDisruptionBudgets,
  pods,
} from '../../kube/resources.ts';
import { counted, listed } from '../../util/phrases.ts';
import type { Check } from '../context.ts';
import type { FoundBy } from '../finding.ts';
import { slimPod } from '../pods.ts';
import { budgetsOfOperators } from './operators.ts';

export const checkDrains: Check = async ({ list }) => {
  const [allNodes, allPods, budgets, sets, isOfOperator] = await Promise.all([
    list(nodes),
    list(pods, { slim: slimPod }),
    list(podDisruptionBudgets),
    list(daemonSets),
    budgetsOfOperators({ list }),
  ]);
  if (allNodes.kind === 'unknown') return [{ state: 'unknown', message: allNodes.why }];
  if (allPods.kind === 'unknown') return [{ state: 'unknown', message: allPods.why }];
  if (budgets.kind === 'unknown') return [{ state: 'unknown', message: budgets.why }];
  const facts: PodFacts = {
    isOrphaned: orphanTest(sets.kind === 'answer' ? sets.value.map(keyOf) : undefined),
    ruleFor: () => undefined,
  };
  const ofNode = Map.groupBy(allPods.value, ({ spec }) => spec?.nodeName ?? '');
  const blocked = new Map<string, { budget: BlockingBudget; nodes: string[] }>();
  const lost: string[] = [];
  const withData: string[] = [];
  for (const { metadata } of allNodes.value) {
    const here = ofNode.get(metadata.name) ?? [];
    const { evict } = sortPods(here, DEFAULT_DRAIN, facts);
    for (const budget of hopelessBudgets(evict, budgets.value, isOfOperator))
      blocked
        .getOrInsert(`${budget.budget} ${budget.reason}`, { budget, nodes: [] })
        .nodes.push(metadata.name);
    const strict = sortPods(here, { localData: 'refuse', unmanagedPods: 'refuse' }, facts);
    for (const { pod, reason } of strict.refused)
      (reason.includes('emptyDir') ? withData : lost).push(pod);
  }
  const findings = [...blocked.values()].map(blockedBy);
  if (lost.length > 0) findings.push(lostFinding(lost));
  if (findings.length > 0) return findings;
  const data =
    withData.length === 0
      ? ''
      : `; ${counted(withData.length, 'pod')} would lose the data in an emptyDir volume, as with every restart of a pod`;
  return [{ state: 'ok', message: `no budget blocks the drain of a node${data}` }];
};

function orphanTest(names: readonly string[] | undefined): (pod: Pod) => boolean {
  if (names === undefined) return () => false;
  const known = new Set(names);
  return (pod) => {
    const owner = controllerOf(pod);
    return owner !== undefined && !known.has(keyAt(owner.name, pod.metadata.namespace));
  };
}

function blockedBy({
  budget: { budget, reason, pods: blockedPods },
  nodes: names,
}: {
  readonly budget: BlockingBudget;
  readonly nodes: readonly string[];
}): FoundBy {
  return {
    state: 'blocker',
    object: `PodDisruptionBudget ${budget}`,
    message: `${reason}, so the drain of ${listed(names)} cannot end: it covers ${listed(blockedPods, 3)}`,
    cure: 'change the budget, or run more replicas',
  };
}

function lostFinding(names: readonly string[]): FoundBy {
  return {
    state: 'warning',
    object: `Pod ${listed(names)}`,
    message: `nothing creates ${names.length === 1 ? 'it' : `these ${names.length} pods`} again after a drain: no controller owns ${names.length === 1 ? 'it' : 'them'}`,
    cure: 'let a controller such as a Deployment create it, or create it again after the upgrade',
  };
}
