/** Whose turn it is: `order` of an UpgradePolicy puts the targets of a stage into groups that start one after the other. */

import { ownMember } from '../../util/own-member.ts';
import { listed } from '../../util/phrases.ts';
import type { Refusal } from '../gates/registry.ts';
import { type DecisionContext, factsOf, wait } from '../gates/types.ts';
import { isSettled, type Stage, type Target } from '../model/rollout.ts';

type Context = Pick<DecisionContext, 'snapshot' | 'policy'>;

const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';
const ENDS = 'those nodes are done; for a failed one run refit retry NODE';

/** Targets of one group stay in the order of the list. */
export function groupsOf(
  context: Context,
  targets: readonly Target[],
): readonly (readonly Target[])[] {
  if (!context.policy.order) return [targets];
  const groups = [...Map.groupBy(targets, groupIn(context))];
  return groups.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group);
}

/** Says why it is not the turn of a target; undefined if it is. */
export function turnsOf(
  context: Context,
  { targets }: Stage,
): (target: Target) => Refusal | undefined {
  const { order, name, maxFailures } = context.policy;
  if (!order) return () => undefined;
  const groupOf = groupIn(context);
  // No node follows a failed one of the control plane.
  const mayFail = (target: Target): boolean => maxFailures > 0 && groupOf(target).startsWith(REST);
  const open = targets.filter(
    (each) => each.state !== 'done' && !(isSettled(each) && mayFail(each)),
  );
  const [first = ''] = open.map(groupOf).toSorted();
  // They started before the order, the labels or the targets changed, or before a retry.
  const ahead = open.filter((each) => each.state === 'intended' && groupOf(each) > first);
  return (target) => {
    const group = groupOf(target);
    const before = group > first ? open.filter((each) => groupOf(each) < group) : ahead;
    if (before.length === 0) return undefined;
    const names = before.map((each) => each.name);
    const does = group > first ? 'comes after' : 'waits for the later';
    const message = `${target.name} ${does} ${listed(names)} in the order of UpgradePolicy ${name}`;
    const isPassing = before.some(({ state }) => state === 'intended');
    return {
      ...wait('EarlierNodes', message, ENDS, isPassing ? { isPassing } : {}),
      gate: 'order',
      ofRollout: true,
    };
  };
}

/** What the texts of the groups begin with: first those that an entry of the order names, then the rest. */
const FIRST = '0';
const REST = '1';

/** Texts that sort like the groups. Each node of the control plane is one: two at once can cost the quorum. */
function groupIn({ snapshot, policy: { order = [] } }: Context): (target: Target) => string {
  return (target) => {
    const { labels = {} } = factsOf(snapshot, target);
    const places = order.map((entry) => {
      const [key = '', wanted] = entry.split('=');
      const value = ownMember(labels, key);
      if (wanted !== undefined) return value === wanted ? FIRST : REST;
      return value === undefined ? REST : `${FIRST}${value}`;
    });
    return (
      labels[CONTROL_PLANE] === undefined ? [REST, ...places] : [FIRST, ...places, target.name]
    ).join('\n');
  };
}
