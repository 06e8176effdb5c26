/** Owns the count of nodes that cannot take pods, or soon cannot: what a limit of unavailable nodes is held against. */
import type { Node } from '../../kube/types.ts';

/** Names of nodes of the whole cluster, in the plan or not. */
export interface NodeCensus {
  readonly all: ReadonlySet<string>;
  /** Not Ready or unschedulable, whatever made them so. */
  readonly unavailable: ReadonlySet<string>;
  /** Those, and what is in flight and will be. */
  readonly busy: ReadonlySet<string>;
}

/** `inFlight`: names of targets that have started and are not done; those that are no nodes do not count. */
export function censusOf(nodes: readonly Node[], inFlight: readonly string[]): NodeCensus {
  const all = new Set(nodes.map(({ metadata }) => metadata.name));
  const unavailable = new Set(nodes.filter((node) => !isAvailable(node)).map(({ metadata }) => metadata.name));
  return { all, unavailable, busy: new Set([...unavailable, ...inFlight.filter((name) => all.has(name))]) };
}

/** With one more in flight; what is no node does not count. */
export function withBusy(census: NodeCensus, name: string): NodeCensus {
  return census.all.has(name) ? { ...census, busy: new Set([...census.busy, name]) } : census;
}

function isAvailable({ spec, status }: Node): boolean {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return ready?.status === 'True' && spec?.unschedulable !== true;
}
