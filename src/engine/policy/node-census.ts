/** Counts unavailable nodes, for the policy's maxUnavailable. */
import type { Node } from '../../kube/types.ts';

/** Names of all nodes of the cluster, in the plan or not. */
export interface NodeCensus {
  readonly all: ReadonlySet<string>;
  /** Not Ready or unschedulable, for any reason. */
  readonly unavailable: ReadonlySet<string>;
  /** The unavailable nodes and those in flight, which will be unavailable. */
  readonly busy: ReadonlySet<string>;
}

/** `inFlight`: names of targets in progress; those that are no nodes do not count. */
export function censusOf(nodes: readonly Node[], inFlight: readonly string[]): NodeCensus {
  const all = new Set(nodes.map(({ metadata }) => metadata.name));
  const unavailable = new Set(nodes.filter((node) => !isAvailable(node)).map(({ metadata }) => metadata.name));
  return { all, unavailable, busy: new Set([...unavailable, ...inFlight.filter((name) => all.has(name))]) };
}

/** Adds one in flight, if it is a node. */
export function withBusy(census: NodeCensus, name: string): NodeCensus {
  return census.all.has(name) ? { ...census, busy: new Set([...census.busy, name]) } : census;
}

function isAvailable({ spec, status }: Node): boolean {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return ready?.status === 'True' && spec?.unschedulable !== true;
}
