/**
 * Sorts the targets of a stage. First, `waves` and `order` of an UpgradePolicy divide the targets into groups that
 * start one after the other. Then `drain.startWith` sorts the targets of each group, and `spread` alternates between
 * targets from different domains.
 */
import { ownMember } from '../../util/own-member.ts';
import { listed } from '../../util/phrases.ts';
import { isTargetHeld } from '../gates/held-targets.ts';
import type { Refusal } from '../gates/registry.ts';
import { type DecisionContext, labelsOf, wait } from '../gates/types.ts';
import { isOfControlPlane } from '../model/control-plane.ts';
import { isSettled, type Stage, type Target } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { nodeRetriedBy } from '../model/tried-again.ts';
import { awaitedRetries } from './awaited-retries.ts';
import { fewestFirst, uncountedWait } from './fewest-first.ts';
import { wavesOf } from './waves.ts';

type Context = Pick<DecisionContext, 'snapshot' | 'policy'>;

/** The most earlier targets that a wait names. */
const MOST_NAMED = 10;

function endsOf({ abilities }: Snapshot): string {
  return `those nodes are done; for a failed one ${nodeRetriedBy(abilities)}`;
}

/** Returns true if the targets of the stage start in groups, one group after the other. */
function isOrdered({ policy: { order, waves } }: Context, stage: Stage): boolean {
  return order !== undefined || waves !== undefined || stage.controlPlaneFirst === true;
}

/**
 * Returns the groups in the order in which they start. Without `spread` and `drain.startWith`, the targets of a group stay in the order of
 * the list.
 */
export function groupsOf(
  context: Context,
  stage: Stage,
  targets: readonly Target[],
): readonly (readonly Target[])[] {
  const { spread } = context.policy;
  // Returns before the waves are computed if there are no targets, because waves read every target of the stage.
  if (targets.length === 0) return [];
  const within = (group: readonly Target[], peers: () => readonly Target[]): readonly Target[] => {
    const ordered = fewestFirst(context, stage, group);
    return spread === undefined ? ordered : spreadOver(context, spread, ordered, peers());
  };
  if (!isOrdered(context, stage)) return [within(targets, () => stage.targets)];
  const groupOf = groupIn(context, stage);
  const groups = [...Map.groupBy(targets, groupOf)];
  const sorted = groups.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return sorted.map(([key, group]) =>
    within(group, () => stage.targets.filter((target) => groupOf(target) === key)),
  );
}

/**
 * Returns the targets in an order that alternates between the domains: first one target of each domain, then the second
 * target of each domain, and so on. A domain consists of all targets with the same value of the label. Targets without
 * the label form a domain, too. The targets among `peers` that have started are counted, so that the next target comes
 * from another domain than the last one, also if only one target starts at a time.
 */
function spreadOver(
  { snapshot }: Context,
  label: string,
  targets: readonly Target[],
  peers: readonly Target[],
): readonly Target[] {
  const domainOf = (target: Target): string => ownMember(labelsOf(snapshot, target), label) ?? '';
  const started = peers.filter(({ state }) => state !== 'pending');
  const places = new Map<string, number>();
  for (const target of started) countIn(places, domainOf(target));
  const rounds = targets.map((target) => ({
    target,
    round: countIn(places, domainOf(target)),
  }));
  return rounds.toSorted((a, b) => a.round - b.round).map(({ target }) => target);
}

/** Counts one more target of the domain, and returns how many there were before. */
function countIn(places: Map<string, number>, domain: string): number {
  const before = places.get(domain) ?? 0;
  places.set(domain, before + 1);
  return before;
}

/**
 * Returns a function that explains why a target must wait for targets of other groups. That function returns undefined
 * if the target may start.
 */
export function orderCheck(
  context: DecisionContext,
  stage: Stage,
): (target: Target) => Refusal | undefined {
  const { targets } = stage;
  const { order, waves, name, maxFailures } = context.policy;
  const uncounted = uncountedWait(context, stage);
  if (!isOrdered(context, stage)) return uncounted;
  const groupOf = groupIn(context, stage);
  const divided = wavesOf(context, stage);
  const budgetFor = ({ key }: Target): number =>
    divided?.budgets[divided.of.get(key) ?? -1] ?? maxFailures;
  // A failed worker within the failure budget does not stop later groups. A failed node of the control plane stops
  // them.
  const mayFail = (target: Target): boolean =>
    budgetFor(target) > 0 && groupOf(target).startsWith(REST);
  // The plan continues without a worker that somebody holds, or that is pinned to another version.
  const isAside = (target: Target): boolean =>
    target.state === 'skipped' ||
    (target.state === 'pending' &&
      groupOf(target).startsWith(REST) &&
      isTargetHeld(context, stage, target));
  const retried = new Set(
    awaitedRetries(context.snapshot, context.policy).map((each) => each.target.key),
  );
  const isOver = (each: Target): boolean =>
    isSettled(each) && mayFail(each) && !retried.has(each.key);
  const open = targets.filter((each) => each.state !== 'done' && !isAside(each) && !isOver(each));
  const [first = ''] = open.map(groupOf).toSorted();
  // These targets of later groups are in progress already. They started before somebody changed the order, the labels or the targets, or
  // before a retry.
  const ahead = open.filter((each) => each.state === 'intended' && groupOf(each) > first);
  return (target) => {
    const group = groupOf(target);
    const before = group > first ? open.filter((each) => groupOf(each) < group) : ahead;
    if (before.length === 0) return uncounted(target);
    const names = before.map((each) => each.name);
    const isOfPolicy = order !== undefined || waves !== undefined;
    const place = isOfPolicy
      ? ` in ${order ? 'the order' : 'the waves'} of UpgradePolicy ${name}`
      : ': nodes of the control plane start first, one at a time';
    const message =
      group > first || !isOfPolicy
        ? `${target.name} comes after ${listed(names)}${place}`
        : `${target.name} waits for ${listed(names)}, which started earlier than \`order\` of UpgradePolicy ${name} says`;
    const isPassing = before.some(({ state }) => state === 'intended');
    return {
      ...wait('EarlierNodes', message, endsOf(context.snapshot), {
        ...(isPassing && { isPassing }),
        after: names.slice(0, MOST_NAMED),
      }),
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
 * Returns a function that returns the name of the group of a target. The names sort in the order in which the groups
 * start. Each node of the control plane has a group of its own, because upgrading two of these nodes at the same time
 * can cost the quorum.
 */
function groupIn(context: Context, stage: Stage): (target: Target) => string {
  const { snapshot, policy } = context;
  const { order = [] } = policy;
  const waves = wavesOf(context, stage);
  const known = new Map<Target, string>();
  return (target) => known.getOrInsertComputed(target, nameOf);

  function nameOf(target: Target): string {
    const labels = labelsOf(snapshot, target);
    const places = order.map((entry) => {
      const [key = '', wanted] = entry.split('=');
      const value = ownMember(labels, key);
      if (wanted !== undefined) return value === wanted ? FIRST : REST;
      return value === undefined ? REST : `${FIRST}${value}`;
    });
    if (isOfControlPlane({ labels })) return [FIRST, ...places, target.name].join('\n');
    const wave = waves?.of.get(target.key);
    const place = wave === undefined ? [] : [String(wave).padStart(4, '0')];
    return [REST, ...place, ...places].join('\n');
  }
}
