/**
 * Splits a large status: the Plan lists the targets that are in flight or failed, and StatusShards hold all of them.
 */
import { hash } from 'node:crypto';
import { type Plan, plans, type TargetStatus } from '../../../../api/autopilot/plan.ts';
import { type StatusShard, statusShards } from '../../../../api/refit/status-shard.ts';
import type { RecordSharding } from '../../../../engine/contract/features.ts';
import type { Instruction } from '../../../../engine/contract/signal.ts';
import type { World, WorldObject } from '../../../../engine/contract/world.ts';
import type { RecordedState, Target } from '../../../../engine/model/rollout.ts';
import {
  entryBytes,
  exceedPlan,
  PLAN_HOLDS,
  roomForTargets,
} from '../../../../engine/model/status-shards.ts';
import { apiVersionOf } from '../../../../kube/resources.ts';
import { phaseOfPlan, recordedStateOf } from '../states.ts';
import * as shardRecords from './merge.ts';
import { listsOf, type TargetList, withLists } from './target-lists.ts';

export interface Sizes {
  /**
   * The most targets that a plan may list without StatusShards. The limit is lower if the names of the targets, or the plan
   * itself, are long.
   */
  readonly plan: number;
  /** The number of targets in each StatusShard. */
  readonly shard: number;
  /** The most failed targets that a plan with StatusShards may list. */
  readonly failures: number;
}

/**
 * Splits the status of large Plans. With these sizes, 15,000 targets need 75 StatusShards of about 5 KiB each, and the
 * failed targets fit into the Plan together with the targets in flight.
 */
export const shards = shardsOfSizes({ plan: PLAN_HOLDS, shard: 200, failures: 1_000 });

export function shardsOfSizes(sizes: Sizes): RecordSharding<Plan> {
  return {
    spread(plan, { projected: record }, world, now) {
      const lists = listsOf(record);
      const counts = countsOf(lists);
      const known = shardRecords.shardReferenceOf(plan);
      const entries = lists.map((list) => list.entries);
      const room = roomForTargets(plan);
      if (!known && !exceedPlan(entries, sizes.plan) && haveRoom(entries, room))
        return { plan: record, writes: [] };
      const { reference, writes } = known
        ? { reference: known, writes: changesOf(known, lists, world) }
        : begin(plan, lists, sizes.shard);
      const isOver = phaseOfPlan(record.status?.state) !== 'running';
      // The first record writes no counts. The names of its StatusShards depend on the resourceVersion of the plan, and a write
      // of the counts would change that.
      const summary = known && shardRecords.counted(plan, counts, isOver, now);
      const short = shardRecords.withShardReference(
        shortened(record, sizes.failures, room),
        reference,
        counts,
      );
      return { plan: short, writes, ...(summary ? { counted: summary } : {}) };
    },

    holding(plan, targets, world) {
      const reference = shardRecords.shardReferenceOf(plan);
      if (!reference || targets.length === 0) return [];
      return holdersOf(shardRecords.shardsOf(reference, world), targets);
    },
  };
}

/** Returns the StatusShards in `found` that contain any of these targets. */
function holdersOf(
  found: readonly (StatusShard | undefined)[],
  targets: readonly Target[],
): WorldObject[] {
  const names = new Set(targets.map(({ name }) => name));
  return found
    .filter((shard) => shard !== undefined)
    .filter((shard) => shardRecords.entriesOf(shard).some(({ name }) => names.has(name)))
    .map((object) => ({ resource: statusShards, object }));
}

/**
 * Returns the StatusShards of the first record, and the instructions that create them. If another leader has already
 * created StatusShards for another version of the plan, those StatusShards stay unused and are deleted with the plan.
 */
function begin(plan: Plan, lists: readonly TargetList[], size: number) {
  const contents = lists.flatMap(({ command, list, entries }) =>
    Array.from({ length: Math.ceil(entries.length / size) }, (_, index) => {
      const chunk = entries.slice(index * size, (index + 1) * size);
      return { command, list, ...contentOf(chunk, chunk[0]?.lastUpdatedTimestamp) };
    }),
  );
  const { name, uid = '', resourceVersion } = plan.metadata;
  // The digest is computed from the contents, so a StatusShard that already exists under this name has the right
  // contents.
  const digest = hash('sha256', JSON.stringify([uid, resourceVersion, contents]));
  const reference = { prefix: `${name}-${digest.slice(0, 10)}`, count: contents.length };
  const ownerReferences = [{ apiVersion: apiVersionOf(plans), kind: plans.kind, name, uid }];
  const writes = contents.map((content, index): Instruction => {
    const metadata = { name: shardRecords.shardName(reference, index), ownerReferences };
    const object = {
      apiVersion: apiVersionOf(statusShards),
      kind: statusShards.kind,
      metadata,
      ...content,
    };
    return { kind: 'create', resource: statusShards, object };
  });
  return { reference, writes };
}

function changesOf(
  reference: shardRecords.ShardReference,
  lists: readonly TargetList[],
  world: World,
): Instruction[] {
  const byName = ({ entries }: TargetList) => new Map(entries.map((entry) => [entry.name, entry]));
  const entries = new Map(lists.map((each) => [`${each.command}/${each.list}`, byName(each)]));
  return shardRecords.shardsOf(reference, world).flatMap((shard): Instruction[] => {
    if (!shard) return [];
    const own = entries.get(`${shard.command}/${shard.list}`);
    // A target in flight is listed in the plan, so its entry in the StatusShard does not change. Another leader may
    // have written the end of the target into this entry, and a leader with an outdated view must not overwrite that.
    const updated = shardRecords.entriesOf(shard).flatMap((known) => {
      const entry = own?.get(known.name);
      return entry && recordedStateOf(entry.state) === 'intended' ? known : (entry ?? []);
    });
    const content = contentOf(updated, shard.since);
    const { since, pending, settled = [] } = shard;
    if (JSON.stringify(content) === JSON.stringify({ since, pending, settled })) return [];
    return [{ kind: 'replace', resource: statusShards, object: { ...shard, ...content } }];
  });
}

type Content = Required<Pick<StatusShard, 'since' | 'pending' | 'settled'>>;

function contentOf(entries: readonly TargetStatus[], since = ''): Content {
  const groups = new Map<string, Content['settled'][number]>();
  const pending: string[] = [];
  for (const { name, state, lastUpdatedTimestamp } of entries) {
    if (isOpen(recordedStateOf(state))) {
      pending.push(name);
      continue;
    }
    const group = { state, since: lastUpdatedTimestamp, targets: [] };
    groups.getOrInsert(`${state} ${lastUpdatedTimestamp}`, group).targets.push(name);
  }
  return { since, pending, settled: [...groups.values()] };
}

const isOpen = (state: RecordedState): boolean => state === 'pending' || state === 'intended';

/**
 * Returns the plan with the targets in flight, and with as many failed targets as fit into its status, but at most
 * `maxFailures`.
 */
function shortened(record: Plan, maxFailures: number, room: number): Plan {
  const isInFlight = ({ state }: TargetStatus): boolean => recordedStateOf(state) === 'intended';
  const inFlight = listsOf(record).flatMap(({ entries }) => entries.filter(isInFlight));
  let failures = 0;
  let left = room - sizeOf(inFlight);
  return withLists(record, ({ entries }) =>
    entries.filter((entry) => {
      const recorded = recordedStateOf(entry.state);
      if (isOpen(recorded) || recorded === 'done') return recorded === 'intended';
      left -= entryBytes(entry);
      failures += 1;
      return failures <= maxFailures && left >= 0;
    }),
  );
}

function haveRoom(lists: readonly (readonly TargetStatus[])[], room: number): boolean {
  return lists.reduce((bytes, entries) => bytes + sizeOf(entries), 0) <= room;
}

function sizeOf(entries: readonly TargetStatus[]): number {
  return entries.reduce((bytes, entry) => bytes + entryBytes(entry), 0);
}

function countsOf(lists: readonly TargetList[]): shardRecords.Progress {
  const states = lists.flatMap(({ entries }) => entries.map(({ state }) => recordedStateOf(state)));
  const countOf = (wanted: RecordedState): number =>
    states.filter((state) => state === wanted).length;
  const total = states.length;
  const done = countOf('done');
  const inFlight = countOf('intended');
  const pending = countOf('pending');
  return { total, done, inFlight, pending, failed: total - done - inFlight - pending };
}
