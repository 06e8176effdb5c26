/** Gate: limits how many nodes with the same value of a label are unavailable at once, for any reason. */
import type { Node } from '../../kube/resources.ts';
import { onceForEach, onceForEachWith } from '../../util/memo.ts';
import { ownMember } from '../../util/own-member.ts';
import { listed } from '../../util/phrases.ts';
import {
  type GateInput,
  type NodeCensus,
  nodeNameOf,
  nodesAllowedAway,
  PASS,
  type Verdict,
  waitForNodes,
} from './types.ts';

type Input = Pick<GateInput, 'target' | 'facts' | 'policy' | 'census' | 'cluster'>;

/**
 * Three maps whose keys are the values of the label: the names of all Nodes that count, of the unavailable Nodes, and
 * of the busy Nodes.
 */
interface Domains {
  readonly all: ReadonlyMap<string, readonly string[]>;
  readonly busy: ReadonlyMap<string, readonly string[]>;
}

/** The Nodes are grouped once for each census, because every candidate of a decision asks for its domain. */
const domainsIn = onceForEach((fleet: readonly Node[]) =>
  onceForEachWith((census: NodeCensus, label): Domains => {
    const named = fleet.flatMap(({ metadata: { name, labels = {} } }) => {
      const value = ownMember(labels, label);
      return value === undefined || !census.all.has(name) ? [] : [{ name, value }];
    });
    const busy = named.filter(({ name }) => census.busy.has(name));
    return { all: namesByValue(named), busy: namesByValue(busy) };
  }),
);

function namesByValue(nodes: readonly Readonly<Record<'name' | 'value', string>>[]) {
  const groups = [...Map.groupBy(nodes, ({ value }) => value)];
  return new Map(groups.map(([value, group]) => [value, group.map(({ name }) => name)]));
}

export const domainAvailable = {
  name: 'domain-available',
  evaluate({ target, facts, policy, census, cluster: { fleet = [] } }: Input): Verdict {
    const { perDomain, name } = policy;
    const node = nodeNameOf(target, facts);
    // A target whose node is already unavailable does not raise the count. A target that is not a Node makes no Node
    // unavailable.
    if (!perDomain || !census?.all.has(node) || census.unavailable.has(node)) return PASS;
    const { label, limit } = perDomain;
    const domain = ownMember(facts.labels ?? {}, label);
    if (domain === undefined) return PASS;
    const domains = domainsIn(fleet)(census, label);
    const names = domains.all.get(domain) ?? [];
    const away = domains.busy.get(domain) ?? [];
    const count = away.length - (census.busy.has(node) ? 1 : 0);
    const allowed = nodesAllowedAway(limit, names.length);
    if (count < allowed) return PASS;
    const others = away.filter((each) => each !== node);
    const message = `${count} of ${names.length} nodes with ${label}=${domain} ${count === 1 ? 'is' : 'are'} not Ready, unschedulable or at work (${listed(others)}); UpgradePolicy ${name} allows ${allowed}`;
    return waitForNodes('DomainFull', message, census, {
      counted: others,
      limit: 'perDomain.maxUnavailable',
    });
  },
};
