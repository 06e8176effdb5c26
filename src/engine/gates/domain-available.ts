/** Gate: limits how many nodes with the same value of a label are unavailable at once, for whatever reason. */
import { ownMember } from '../../util/own-member.ts';
import { listed } from '../../util/phrases.ts';
import { type Gate, nodeNameOf, nodesAllowedAway, PASS, wait } from './types.ts';

export const domainAvailable: Gate = {
  name: 'domain-available',
  evaluate({ target, facts, policy, census, fleet = [] }) {
    const { perDomain, name } = policy;
    const node = nodeNameOf(target, facts);
    // A node that is unavailable already does not raise the count. A target that is no Node runs no pods.
    if (!perDomain || !census?.all.has(node) || census.unavailable.has(node)) return PASS;
    const { label, limit } = perDomain;
    const domain = ownMember(facts.labels ?? {}, label);
    if (domain === undefined) return PASS;
    const names = fleet
      .filter(({ metadata }) => ownMember(metadata.labels ?? {}, label) === domain)
      .map(({ metadata }) => metadata.name)
      .filter((each) => census.all.has(each));
    const busy = names.filter((each) => each !== node && census.busy.has(each)).toSorted();
    const allowed = nodesAllowedAway(limit, names.length);
    if (busy.length < allowed) return PASS;
    const message = `${busy.length} of ${names.length} nodes with ${label}=${domain} are not Ready, unschedulable or at work (${listed(busy)}); UpgradePolicy ${name} allows ${allowed}`;
    const ends =
      'one of those nodes is available again, or perDomain.maxUnavailable of the UpgradePolicy is raised';
    return wait('DomainFull', message, ends);
  },
};
