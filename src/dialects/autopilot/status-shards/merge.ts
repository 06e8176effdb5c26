/** Reads a Plan with StatusShards: gives it the status that it would have if it held all targets itself. */
import type { Plan, TargetStatus } from '../../../api/autopilot/plan.ts';
import { type StatusShard, statusShards } from '../../../api/refit/status-shard.ts';
import type { World } from '../../../engine/dialect.ts';
import { because, type Reason } from '../../../engine/model/reasons.ts';
import { PLAN_STATES, phaseOfPlan, TARGET_STATES } from '../states.ts';
import { progressOf } from './progress.ts';
import { type ShardReference, shardName, shardReferenceOf, withoutReference } from './shard-reference.ts';
import { listsOf, withLists } from './target-lists.ts';

export interface MergedPlan {
  readonly plan: Plan;
  /** Set when a StatusShard is missing: then nothing may start. */
  readonly unread?: Reason;
}

/** Returns the same plan if its status holds all targets. */
export function mergeShards(plan: Plan, world: World): MergedPlan {
  const reference = shardReferenceOf(plan);
  if (!reference) {
    const lost = plan.status?.state && progressOf(plan) !== undefined;
    if (!lost) return { plan };
    const message =
      'status.commands[0].description no longer names the StatusShards of this Plan; restore it, or delete the Plan and create it again';
    return { plan, unread: because('RecordUnread', message) };
  }
  const found = shardsOf(reference, world);
  const missing = found.findIndex((shard) => shard === undefined);
  const shards = found.filter((shard) => shard !== undefined);
  const whole = withoutReferences(withTargets(plan, shards));
  if (missing < 0) return { plan: withRetries(whole) };
  const message = `StatusShard ${shardName(reference, missing)} is missing, so the state of its targets is unknown`;
  return { plan: whole, unread: because('RecordUnread', message) };
}

/** A leader that knows no StatusShards completes the Plan when the listed targets are done. Ours then continues with the rest. */
function withRetries(whole: Plan): Plan {
  if (phaseOfPlan(whole.status?.state) !== 'done') return whole;
  const isOpen = listsOf(whole).some(({ entries }) => entries.some(({ state }) => state === TARGET_STATES.pending));
  if (!isOpen || !whole.status) return whole;
  return { ...whole, status: { ...whole.status, state: PLAN_STATES.schedulableWait } };
}

/** In order; undefined for each that the world does not show. */
export function shardsOf(reference: ShardReference, world: World): (StatusShard | undefined)[] {
  return Array.from({ length: reference.count }, (_, index) => world.get(statusShards, shardName(reference, index)));
}

/** An entry in the Plan wins over the one in its StatusShard: the StatusShard is written first, the Plan completes the record. */
function withTargets(plan: Plan, shards: readonly StatusShard[]): Plan {
  return withLists(plan, ({ command, list, entries }) => {
    const own = shards.filter((shard) => shard.command === command && shard.list === list);
    const listed = new Map(entries.map((entry) => [entry.name, entry]));
    return own.flatMap(entriesOf).map((entry) => listed.get(entry.name) ?? entry);
  });
}

export function entriesOf({ settled = [], pending, since }: StatusShard): TargetStatus[] {
  return [
    ...settled.flatMap((group) => group.targets.map((name) => entryOf(name, group.state, group.since))),
    ...pending.map((name) => entryOf(name, TARGET_STATES.pending, since)),
  ];
}

const entryOf = (name: string, state: string, lastUpdatedTimestamp: string): TargetStatus => ({
  name,
  state,
  lastUpdatedTimestamp,
});

function withoutReferences(plan: Plan): Plan {
  if (!plan.status) return plan;
  return { ...plan, status: { ...plan.status, commands: plan.status.commands.map(withoutReference) } };
}
