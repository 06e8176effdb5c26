/**
 * Checks whether the pods of DaemonSets are Ready on nodes. A Ready node without the pods for its network, its storage
 * or a similar service does not work.
 */
import type { KubeClient } from '../kube/client.ts';
import { type Pod, pods, trueCondition } from '../kube/resources.ts';
import { defined } from '../util/json.ts';
import { listed } from '../util/phrases.ts';
import type { CheckFinding, DaemonSetCheck } from './checks.ts';

const CRITICAL = new Set(['system-node-critical', 'system-cluster-critical']);
/** The most pods that the message names. */
const MOST_NAMES = 3;
/**
 * The most nodes whose pods are listed one node at a time. For more nodes, one list of all pods costs the API server
 * less.
 */
const MOST_SINGLE = 20;

/** Resolves with the result of the check. `nodes` are the names of the Nodes whose pods are checked. */
export async function askDaemonSets(
  client: KubeClient,
  check: DaemonSetCheck,
  nodes: ReadonlySet<string>,
  abort: AbortSignal,
): Promise<CheckFinding> {
  const found = await podsOn(client, nodes, abort);
  const counted = found.filter(
    (pod) =>
      isOfDaemonSet(pod) &&
      (check.pods === 'all' || CRITICAL.has(pod.spec?.priorityClassName ?? '')),
  );
  const unready = counted.filter((pod) => !isReady(pod));
  if (unready.length === 0)
    return { state: 'passing', message: `${counted.length} pods of DaemonSets are Ready` };
  const names = unready.map(nameOf).toSorted();
  const what = unready.length === 1 ? 'pod of a DaemonSet is' : 'pods of DaemonSets are';
  return {
    state: 'failing',
    message: `${unready.length} ${what} not Ready: ${listed(names, MOST_NAMES)}`,
    nodes: [...new Set(unready.map((pod) => pod.spec?.nodeName ?? ''))].toSorted(),
  };
}

async function podsOn(
  client: KubeClient,
  nodes: ReadonlySet<string>,
  abort: AbortSignal,
): Promise<Pod[]> {
  if (nodes.size > MOST_SINGLE) {
    const all = await listPods(client, undefined, abort);
    return all.filter(({ spec }) => nodes.has(spec?.nodeName ?? ''));
  }
  const lists = await Promise.all(
    [...nodes].map(async (node) => await listPods(client, `spec.nodeName=${node}`, abort)),
  );
  return lists.flat();
}

async function listPods(
  client: KubeClient,
  fieldSelector: string | undefined,
  abort: AbortSignal,
): Promise<Pod[]> {
  return (await client.listAll(pods, defined({ fieldSelector, abort }))).items;
}

function isOfDaemonSet({ metadata }: Pod): boolean {
  return (metadata.ownerReferences ?? []).some(
    ({ kind, controller }) => kind === 'DaemonSet' && controller === true,
  );
}

/** A pod that is being deleted is not Ready: its DaemonSet creates another pod, which must become Ready. */
function isReady({ metadata, status }: Pod): boolean {
  if (metadata.deletionTimestamp !== undefined) return false;
  return trueCondition(status?.conditions, 'Ready') !== undefined;
}

function nameOf({ metadata, spec }: Pod): string {
  return `${metadata.namespace}/${metadata.name} on ${spec?.nodeName}`;
}
