/** Orders the targets of a stage: `order` of an UpgradePolicy puts them into groups that start one after the other. */

import { ownMember } from '../../util/own-member.ts';
import { listed } from '../../util/phrases.ts';
import { isTargetHeld } from '../gates/not-held.ts';
import type { Refusal } from '../gates/registry.ts';
import { type DecisionContext, factsOf, wait } from '../gates/types.ts';
import { isSettled, type Stage, type Target } from '../model/rollout.ts';

const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';
const ENDS = 'those nodes are done; for a failed one run refit retry NODE';

/** Returns the groups in the order in which they start. The targets of one group stay in the order of the list. */
export function groupsOf(
  context: Pick<DecisionContext, 'snapshot' | 'policy'>,
  targets: readonly Target[],
): readonly (readonly Target[])[] {
  if (!context.policy.order) return [targets];
  const groups = [...Map.groupBy(targets, groupIn(context))];
  return groups.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group);
}

/**
 * Returns a function that says why a target must wait for targets of other groups. That function returns undefined if the target may
 * start.
 */
export function orderCheck(
  context: DecisionContext,
  { targets }: Stage,
): (target: Target) => Refusal | undefined {
  const { order, name, maxFailures } = context.policy;
  if (!order) return () => undefined;
  const groupOf = groupIn(context);
  // A failed worker within the failure budget does not stop later groups. A failed node of the control plane does.
  const mayFail = (target: Target): boolean => maxFailures > 0 && groupOf(target).startsWith(REST);
  // The plan goes on around a worker that somebody holds.
  const isAside = (target: Target): boolean =>
    target.state === 'skipped' ||
    (target.state === 'pending' &&
      groupOf(target).startsWith(REST) &&
      isTargetHeld(context.snapshot, target, context.now));
  const open = targets.filter(
    (each) => each.state !== 'done' && !isAside(each) && !(isSettled(each) && mayFail(each)),
  );
  const [first = ''] = open.map(groupOf).toSorted();
  // These targets started early: before the order, the labels or the targets changed, or before a retry.
  const ahead = open.filter((each) => each.state === 'intended' && groupOf(each) > first);
  return (target) => {
    const group = groupOf(target);
    const before = group > first ? open.filter((each) => groupOf(each) < group) : ahead;
    if (before.length === 0) return undefined;
    const names = before.map((each) => each.name);
    const message =
      group > first
        ? `${target.name} comes after ${listed(names)} in the order of UpgradePolicy ${name}`
        : `${target.name} waits for ${listed(names)}, which started early although \`order\` of UpgradePolicy ${name} puts ${names.length === 1 ? 'it' : 'them'} later`;
    const isPassing = before.some(({ state }) => state === 'intended');
    return {
      ...wait('EarlierNodes', message, ENDS, isPassing ? { isPassing } : {}),
      gate: 'order',
      ofRollout: true,
    };
  };
}

/**
 * These texts begin each part of a group's name: FIRST if the target matches that part, REST if it does not. So the targets that
 * match sort first.
 */
const FIRST = '0';
const REST = '1';

/**
 * Returns a function that returns the name of a target's group. The names sort in the order of the groups. Each node of the control
 * plane has a group of its own, because two at once can cost the quorum.
 */
function groupIn({
  snapshot,
  policy: { order = [] },
}: Pick<DecisionContext, 'snapshot' | 'policy'>): (target: Target) => string {
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
