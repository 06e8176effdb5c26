/** Owns reading a Plan whose targets stand in status shards: its status as it would be if it held all of them. */
import type { Plan, TargetStatus } from '../../../api/autopilot/plan.ts';
import { type StatusShard, statusShards } from '../../../api/refit/status-shard.ts';
import type { World } from '../../../engine/dialect.ts';
import { because, type Reason } from '../../../engine/model/reasons.ts';
import { PLAN_STATES, phaseOfPlan, TARGET_STATES } from '../states.ts';
import { type Mark, markOf, shardName, textBesideMark } from './mark.ts';
import { progressOf } from './progress.ts';
import { listsOf, withLists } from './target-lists.ts';

export interface MergedPlan {
  readonly plan: Plan;
  /** Why status shards that belong to it are not in it. */
  readonly unread?: Reason;
}

/** The very same plan where its status holds everything. The mark is taken out of its description. */
export function mergeShards(plan: Plan, world: World): MergedPlan {
  const mark = markOf(plan);
  if (!mark) {
    const lost = plan.status?.state && progressOf(plan) !== undefined;
    if (!lost) return { plan };
    const message = 'the description of command 0 does not name the StatusShards of the plan any more';
    return { plan, unread: because('RecordUnread', message) };
  }
  const found = shardsOf(mark, world);
  const missing = found.findIndex((shard) => shard === undefined);
  const shards = found.filter((shard) => shard !== undefined);
  const whole = withoutMark(withTargets(plan, shards));
  if (missing < 0) return { plan: withRetries(whole) };
  const message = `StatusShard ${shardName(mark, missing)} is not to be seen, and what it holds is not known`;
  return { plan: whole, unread: because('RecordUnread', message) };
}

/**
 * Ours says `Completed` once all status shards do. A leader that knows none of them says so of what the plan lists: then it goes on.
 */
function withRetries(whole: Plan): Plan {
  if (phaseOfPlan(whole.status?.state) !== 'done') return whole;
  const isOpen = listsOf(whole).some(({ entries }) => entries.some(({ state }) => state === TARGET_STATES.pending));
  if (!isOpen || !whole.status) return whole;
  return { ...whole, status: { ...whole.status, state: PLAN_STATES.schedulableWait } };
}

/** In their order; undefined for each that the world does not show. */
export function shardsOf(mark: Mark, world: World): (StatusShard | undefined)[] {
  return Array.from({ length: mark.shards }, (_, index) => world.get(statusShards, shardName(mark, index)));
}

/** What the plan lists counts: a status shard is written before it, and the plan says whether that was the whole record. */
function withTargets(plan: Plan, shards: readonly StatusShard[]): Plan {
  return withLists(plan, ({ command, list, entries }) => {
    const own = shards.filter((shard) => shard.command === command && shard.list === list);
    const listed = new Map(entries.map((entry) => [entry.name, entry]));
    return own.flatMap(entriesOf).map((entry) => listed.get(entry.name) ?? entry);
  });
}

/** In the order in which they stand there. */
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

function withoutMark(plan: Plan): Plan {
  if (!plan.status) return plan;
  const commands = plan.status.commands.map((command) => {
    const { description: _, ...rest } = command;
    const text = textBesideMark(command);
    return text === undefined ? rest : { ...rest, description: text };
  });
  return { ...plan, status: { ...plan.status, commands } };
}
