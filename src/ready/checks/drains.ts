/** Checks whether the drain of each node can end: budgets that never allow an eviction, and pods that would be lost. */
import {
  type BlockingBudget,
  budgetsOf,
  holdingBudgets,
  hopelessBudgets,
} from '../../drain/budgets.ts';
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
import { formatDuration } from '../../util/duration.ts';
import { counted, listed } from '../../util/phrases.ts';
import type { Check, DrainLimit, ReadyContext } from '../context.ts';
import type { FoundBy } from '../finding.ts';
import { slimPod } from '../pods.ts';
import { undrainedNodes } from '../undrained.ts';
import { budgetsOfOperators } from './operators.ts';

export const checkDrains: Check = async (context) => {
  const { list } = context;
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
  const undrained = await undrainedNodes(context);
  const ofNode = Map.groupBy(allPods.value, ({ spec }) => spec?.nodeName ?? '');
  const blocked = new Map<string, Held>();
  const holding = new Map<string, Held>();
  const own = budgets.value.filter((budget) => !isOfOperator(budget));
  const lost: string[] = [];
  const withData: string[] = [];
  for (const { metadata } of allNodes.value) {
    if (undrained.has(metadata.name)) continue;
    const here = ofNode.get(metadata.name) ?? [];
    const { evict } = sortPods(here, DEFAULT_DRAIN, facts);
    const hopeless = hopelessBudgets(evict, budgets.value, isOfOperator);
    for (const budget of hopeless) {
      const isShared = evict.some(
        (pod) => keyOf(pod) === budget.pods[0] && budgetsOf(pod, budgets.value).length > 1,
      );
      blocked
        .getOrInsert(`${budget.budget} ${budget.reason}`, { budget, nodes: [], isShared })
        .nodes.push(metadata.name);
    }
    // Each pod is told once, with what blocks it for the longest time.
    const told = new Set(hopeless.flatMap((each) => each.pods));
    const others = evict.filter((pod) => !told.has(keyOf(pod)));
    for (const budget of holdingBudgets(others, own))
      holding.getOrInsert(budget.budget, { budget, nodes: [] }).nodes.push(metadata.name);
    const strict = sortPods(here, { localData: 'refuse', unmanagedPods: 'refuse' }, facts);
    for (const { pod, reason } of strict.refused)
      (reason.includes('emptyDir') ? withData : lost).push(pod);
  }
  const limits = blocked.size === 0 ? new Map<string, DrainLimit>() : await drainLimits(context);
  const findings = [...blocked.values()].flatMap((held) => blockedBy(held, limits));
  findings.push(...[...holding.values()].map(heldBy));
  if (sets.kind === 'unknown')
    findings.push({
      state: 'unknown',
      message: `whether the DaemonSets of all pods exist: ${sets.why}`,
    });
  if (lost.length > 0) findings.push(lostFinding(lost));
  if (findings.length > 0) return findings;
  const data =
    withData.length === 0
      ? ''
      : `; ${counted(withData.length, 'pod')} would lose the data in an emptyDir volume, as with every restart of a pod`;
  return [
    { state: 'ok', message: `no budget blocks the drain of a node${data}${notDrained(undrained)}` },
  ];
};

function notDrained({ size }: ReadonlySet<string>): string {
  return size === 0
    ? ''
    : `; ${counted(size, 'node')} of Plans without \`drain\` will not be drained`;
}

function orphanTest(names: readonly string[] | undefined): (pod: Pod) => boolean {
  if (names === undefined) return () => false;
  const known = new Set(names);
  return (pod) => {
    const owner = controllerOf(pod);
    return owner !== undefined && !known.has(keyAt(owner.name, pod.metadata.namespace));
  };
}

interface Held {
  readonly budget: BlockingBudget;
  readonly nodes: string[];
  /** True if another budget covers the pods, too. Kubernetes evicts no such pod. */
  readonly isShared?: boolean;
}

/** Returns the finding about a budget that allows an eviction only once more of its pods are healthy. */
function heldBy({ budget: { budget, reason, pods: heldPods }, nodes: names }: Held): FoundBy {
  return {
    state: 'warning',
    object: `PodDisruptionBudget ${budget}`,
    message: `it allows no eviction now (${reason}), so the drain of ${listed(names)} waits: it covers ${listed(heldPods, 3)}`,
    cure: 'make all pods that it covers Ready first',
  };
}

/** Resolves with the limits of drains that the dialects know, by the names of Nodes. */
async function drainLimits({
  dialects,
  ...asking
}: ReadyContext): Promise<ReadonlyMap<string, DrainLimit>> {
  const found = await Promise.all(
    dialects.map(async (each) => [...((await each.drainLimits?.(asking)) ?? [])]),
  );
  return new Map(found.flat());
}

/** Returns a blocker for the nodes whose drain cannot end, and a warning for those whose drain has a limit. */
function blockedBy(
  { budget: { budget, reason, pods: blockedPods }, nodes: names, isShared = false }: Held,
  limits: ReadonlyMap<string, DrainLimit>,
): FoundBy[] {
  const object = `PodDisruptionBudget ${budget}`;
  const covered = `it covers ${listed(blockedPods, 3)}`;
  const cure = isShared
    ? 'let only one budget cover each pod'
    : 'change the budget, or run more replicas';
  const limited = names.flatMap((name) => {
    const limit = limits.get(name);
    return limit?.kind === 'limit' ? [`${name} after ${formatDuration(limit.seconds * 1000)}`] : [];
  });
  const endless = names.filter((name) => limits.get(name)?.kind !== 'limit');
  const findings: FoundBy[] = [];
  if (endless.length > 0)
    findings.push({
      state: 'blocker',
      object,
      message: `${reason}, so the drain of ${listed(endless)} cannot end${unlessLimited(endless, limits)}: ${covered}`,
      cure,
    });
  if (limited.length > 0)
    findings.push({
      state: 'warning',
      object,
      message: `${reason}, so the drain ends only at the limit of the Machine, and then the pods stop without an eviction (${listed(limited)}): ${covered}`,
      cure,
    });
  return findings;
}

/** Returns the words that limit the claim that a drain cannot end, if nobody can tell whether it has a limit. */
function unlessLimited(names: readonly string[], limits: ReadonlyMap<string, DrainLimit>): string {
  const [why] = names.flatMap((name) => {
    const limit = limits.get(name);
    return limit?.kind === 'unknown' ? [limit.why] : [];
  });
  return why === undefined ? '' : `, unless its Machine has a limit (${why})`;
}

function lostFinding(names: readonly string[]): FoundBy {
  return {
    state: 'warning',
    object: `Pod ${listed(names)}`,
    message: `nothing creates ${names.length === 1 ? 'it' : `these ${names.length} pods`} again after a drain: no controller owns ${names.length === 1 ? 'it' : 'them'}`,
    cure: 'let a controller such as a Deployment create it, or create it again after the upgrade',
  };
}
