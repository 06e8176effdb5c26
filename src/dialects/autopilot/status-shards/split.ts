/** Owns the way from a whole status to a Plan that lists what is in flight or failed, and status shards that hold the rest. */
import { createHash } from 'node:crypto';
import type { Plan, TargetStatus } from '../../../api/autopilot/plan.ts';
import { plans } from '../../../api/autopilot/plan.ts';
import { type StatusShard, statusShards } from '../../../api/refit/status-shard.ts';
import { exceedPlan, PLAN_HOLDS } from '../../../engine/act/status-shards.ts';
import type { Instruction, StatusSharding, World, WorldObject } from '../../../engine/dialect.ts';
import type { RecordedState, Target } from '../../../engine/model/recorded.ts';
import { apiVersionOf } from '../../../kube/resources.ts';
import { phaseOfPlan, recordedStateOf } from '../states.ts';
import { type Mark, markOf, shardName, withMark } from './mark.ts';
import { entriesOf, shardsOf } from './merge.ts';
import { counted, type Progress } from './progress.ts';
import { listsOf, type TargetList, withLists } from './target-lists.ts';

export interface Sizes {
  /** Targets of a plan that needs no status shards, where their names leave room for so many. */
  readonly plan: number;
  readonly shard: number;
  /** Failed targets that a plan with status shards lists, which hold all of them. */
  readonly failures: number;
}

/**
 * 200 in a status shard make 75 of 15,000 targets; each write of one takes some 5 KiB. More than 1,000 failures nobody reads in one
 * object, and they must fit into it beside what is in flight.
 */
const SIZES: Sizes = { plan: PLAN_HOLDS, shard: 200, failures: 1_000 };

export const shards = shardsOfSizes(SIZES);

export function shardsOfSizes(sizes: Sizes): StatusSharding<Plan> {
  return {
    split(plan, record, world, now) {
      const lists = listsOf(record);
      const counts = countsOf(lists);
      const known = markOf(plan);
      const isSmall = !exceedPlan(
        lists.map(({ entries }) => entries),
        sizes.plan,
      );
      if (!known && isSmall) return { plan: record, writes: [] };
      const { mark, writes } = known
        ? { mark: known, writes: changesOf(known, lists, world) }
        : begin(plan, lists, sizes.shard);
      const isOver = phaseOfPlan(record.status?.state) !== 'running';
      // The first record names the status shards by the version of the plan that it was decided on: nothing may come between.
      const summary = known && counted(plan, counts, isOver, now);
      const short = withMark(shortened(record, sizes.failures), mark, counts);
      return { plan: short, writes, ...(summary ? { counted: summary } : {}) };
    },

    holding(plan, targets, world) {
      const mark = markOf(plan);
      return mark && targets.length > 0 ? holdersOf(shardsOf(mark, world), targets) : [];
    },
  };
}

function holdersOf(found: readonly (StatusShard | undefined)[], targets: readonly Target[]): WorldObject[] {
  const names = new Set(targets.map(({ name }) => name));
  return found
    .filter((shard) => shard !== undefined)
    .filter(({ pending, settled = [] }) =>
      [...pending, ...settled.flatMap((group) => group.targets)].some((name) => names.has(name)),
    )
    .map((object) => ({ resource: statusShards, object }));
}

/**
 * Status shards are named by the version of the plan and by what is in them: whoever finds one that exists already finds what it
 * would have written, and what others began on another view stays unnamed until it goes with the plan.
 */
function begin(plan: Plan, lists: readonly TargetList[], size: number): { mark: Mark; writes: Instruction[] } {
  const contents = lists.flatMap(({ command, list, entries }) =>
    chunksOf(entries, size).map((chunk) => ({
      command,
      list,
      ...contentOf(chunk, chunk[0]?.lastUpdatedTimestamp ?? ''),
    })),
  );
  const { name, uid = '', resourceVersion } = plan.metadata;
  const hash = createHash('sha256').update(JSON.stringify([uid, resourceVersion, contents]));
  const mark = { prefix: `${name}-${hash.digest('hex').slice(0, 10)}`, shards: contents.length };
  const ownerReferences = [{ apiVersion: apiVersionOf(plans), kind: plans.kind, name, uid }];
  const writes = contents.map((content, index): Instruction => {
    const metadata = { name: shardName(mark, index), ownerReferences };
    const object: StatusShard = {
      apiVersion: apiVersionOf(statusShards),
      kind: statusShards.kind,
      metadata,
      ...content,
    };
    return { kind: 'create', resource: statusShards, object };
  });
  return { mark, writes };
}

function chunksOf(entries: readonly TargetStatus[], size: number): TargetStatus[][] {
  const count = Math.ceil(entries.length / size);
  return Array.from({ length: count }, (_, index) => entries.slice(index * size, (index + 1) * size));
}

function changesOf(mark: Mark, lists: readonly TargetList[], world: World): Instruction[] {
  const entries = new Map(
    lists.map(({ command, list, entries: all }) => [
      `${command}/${list}`,
      new Map(all.map((entry) => [entry.name, entry])),
    ]),
  );
  return shardsOf(mark, world).flatMap((shard): Instruction[] => {
    if (!shard) return [];
    const own = entries.get(`${shard.command}/${shard.list}`);
    // The plan decides what is in flight: a leader with an old view of a node must not undo the end that another leader wrote.
    const news = entriesOf(shard).flatMap((told) => {
      const entry = own?.get(told.name);
      return entry && recordedStateOf(entry.state) === 'intended' ? told : (entry ?? []);
    });
    const content = contentOf(news, shard.since);
    if (JSON.stringify(content) === JSON.stringify(contentOfShard(shard))) return [];
    return [{ kind: 'replace', resource: statusShards, object: { ...shard, ...content } }];
  });
}

type Content = Required<Pick<StatusShard, 'since' | 'pending' | 'settled'>>;

const contentOfShard = ({ since, pending, settled = [] }: StatusShard): Content => ({ since, pending, settled });

function contentOf(entries: readonly TargetStatus[], since: string): Content {
  const groups = new Map<string, Content['settled'][number]>();
  const pending: string[] = [];
  for (const { name, state, lastUpdatedTimestamp } of entries) {
    if (isOpen(recordedStateOf(state))) {
      pending.push(name);
      continue;
    }
    const key = `${state} ${lastUpdatedTimestamp}`;
    const group = groups.get(key) ?? { state, since: lastUpdatedTimestamp, targets: [] };
    group.targets.push(name);
    groups.set(key, group);
  }
  return { since, pending, settled: [...groups.values()] };
}

const isOpen = (state: RecordedState): boolean => state === 'pending' || state === 'intended';

/** The plan with what is in flight, and the first of what failed. */
function shortened(record: Plan, most: number): Plan {
  let failures = 0;
  return withLists(record, ({ entries }) =>
    entries.filter(({ state }) => {
      const recorded = recordedStateOf(state);
      if (isOpen(recorded) || recorded === 'done') return recorded === 'intended';
      return ++failures <= most;
    }),
  );
}

function countsOf(lists: readonly TargetList[]): Omit<Progress, 'at'> {
  const counts = { total: 0, done: 0, inFlight: 0, pending: 0, failed: 0 };
  for (const { state } of lists.flatMap(({ entries }) => entries)) {
    counts.total++;
    const recorded = recordedStateOf(state);
    if (recorded === 'done') counts.done++;
    else if (recorded === 'intended') counts.inFlight++;
    else if (recorded === 'pending') counts.pending++;
    else counts.failed++;
  }
  return counts;
}
