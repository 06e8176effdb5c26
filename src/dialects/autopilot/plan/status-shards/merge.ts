/**
 * Reads a Plan with StatusShards, and gives the Plan the status that it would have if it contained all targets itself.
 */
import { z } from 'zod';
import type { CommandStatus, Plan, TargetStatus } from '../../../../api/autopilot/plan.ts';
import { type StatusShard, statusShards } from '../../../../api/refit/status-shard.ts';
import type { World } from '../../../../engine/contract/world.ts';
import { because, type Reason } from '../../../../engine/model/reasons.ts';
import { isGeneration } from '../../../../engine/model/runs.ts';
import { annotated, withoutAnnotations } from '../../../../kube/resources.ts';
import { rfc3339 } from '../../../../util/clock.ts';
import { parseJson } from '../../../../util/json.ts';
import { onceForEachAmong } from '../../../../util/memo.ts';
import { scalarText } from '../../../../util/scalar-text.ts';
import { recordedRunIn } from '../recorded-run.ts';
import { PLAN_STATES, phaseOfPlan, TARGET_STATES } from '../states.ts';
import { listsOf, withCommands, withLists } from './target-lists.ts';

export const PROGRESS_ANNOTATION = 'upgrade.refit.dev/progress';

/** The fewest milliseconds between two writes of the counts. Writes are rare, because each of them stores the whole Plan again. */
const COUNTED_EVERY_MS = 10_000;

export interface Progress extends Counts {
  readonly inFlight: number;
  readonly pending: number;
}

/**
 * Returns the time and run of the counts in the progress annotation; undefined if the Plan has no such annotation. `at` is in
 * milliseconds since the Unix epoch, or NaN if it cannot be parsed.
 */
function countedIn({ metadata }: Plan): { readonly at: number; readonly run: unknown } | undefined {
  const text = metadata.annotations?.[PROGRESS_ANNOTATION];
  const { at, run } = Object(parseJson(text)) as { at?: unknown; run?: unknown };
  return text === undefined ? undefined : { at: Date.parse(scalarText(at)), run };
}

export function withoutCounts(plan: Plan): Plan {
  return withoutAnnotations(plan, PROGRESS_ANNOTATION);
}

/**
 * Returns the plan with new counts if the old ones are outdated or the rollout is over; otherwise undefined. The returned plan
 * has no status, because the status is written separately.
 */
export function counted(
  plan: Plan,
  counts: Progress,
  isOver: boolean,
  now: number,
): Plan | undefined {
  const age = now - (countedIn(plan)?.at || 0);
  if (age >= 0 && age < COUNTED_EVERY_MS && !isOver) return undefined;
  const { status: _, ...rest } = plan;
  const run = recordedRunIn(withoutShards(plan))?.run;
  return annotated(rest, {
    [PROGRESS_ANNOTATION]: JSON.stringify({ ...counts, ...(run && { run }), at: rfc3339(now) }),
  });
}

const count = z.int().min(0);
const shortStatus = z.strictObject({
  message: z.string().exactOptional(),
  targets: z.strictObject({ total: count, done: count, failed: count }),
  statusShards: z.strictObject({ prefix: z.string().min(1), count }),
});
type ShortStatus = z.infer<typeof shortStatus>;
type Counts = ShortStatus['targets'];
/** Refers to StatusShards with the names `<prefix>-0`, `<prefix>-1` and so on. */
export type ShardReference = ShortStatus['statusShards'];

export function shardReferenceOf({ status }: Plan): ShardReference | undefined {
  return shortStatusIn(status?.commands[0]?.description)?.statusShards;
}

/** Returns the plan with descriptions that do not name StatusShards. */
export function withoutShards(plan: Plan): Plan {
  return withCommands(plan, withoutReference);
}

/** Returns the command with a description that does not name StatusShards. */
export function withoutReference(command: CommandStatus): CommandStatus {
  const found = shortStatusIn(command.description);
  if (!found) return command;
  const { description: _, ...rest } = command;
  return found.message === undefined ? rest : { ...rest, description: found.message };
}

export function withShardReference(
  plan: Plan,
  statusShards: ShardReference,
  targets: Counts,
): Plan {
  const { total, done, failed } = targets;
  return withCommands(plan, (command, index) => {
    if (index > 0) return command;
    const { description: message } = withoutReference(command);
    const found = {
      ...(message === undefined ? {} : { message }),
      targets: { total, done, failed },
      statusShards,
    };
    return { ...command, description: JSON.stringify(found satisfies ShortStatus) };
  });
}

export function shardName({ prefix }: ShardReference, index: number): string {
  return `${prefix}-${index}`;
}

function shortStatusIn(description: string | undefined): ShortStatus | undefined {
  return shortStatus.safeParse(parseJson(description)).data;
}

/**
 * Returns the plan with all its targets. Returns the same object if its own status contains all targets. `unread` is
 * the reason why some targets are unknown, for example because a StatusShard is missing. While `unread` is set, no
 * target may start.
 */
export function mergeShards(
  plan: Plan,
  world: World,
): { readonly plan: Plan; readonly unread?: Reason } {
  const reference = shardReferenceOf(plan);
  if (!reference) {
    const counts = countedIn(plan);
    // If the counts are older than the plan, they were copied from another plan. Otherwise they prove that the plan had
    // StatusShards.
    const isCopy = counts && counts.at < Date.parse(plan.metadata.creationTimestamp ?? '');
    if (!plan.status?.state || counts === undefined || isCopy || areOfEarlierRun(counts, plan))
      return { plan };
    const message =
      'status.commands[0].description no longer names the StatusShards of this Plan; restore it, or delete the Plan and create it again';
    return { plan, unread: because('RecordUnread', message) };
  }
  const found = shardsOf(reference, world);
  const missing = found.findIndex((shard) => shard === undefined);
  const whole = withAllTargets(plan, found);
  if (missing < 0) return { plan: whole };
  const message = `StatusShard ${shardName(reference, missing)} is missing, so the state of its targets is unknown`;
  return { plan: whole, unread: because('RecordUnread', message) };
}

/**
 * Returns the Plan with the targets of its StatusShards. It returns the same object while the Plan and its StatusShards are
 * the same, so that values computed from the result can be cached.
 */
const withAllTargets = onceForEachAmong(
  (plan: Plan, found: readonly (StatusShard | undefined)[]): Plan => {
    const shards = found.filter((shard) => shard !== undefined);
    const whole = withoutShards(withTargets(plan, shards));
    return shards.length === found.length ? withRetries(whole) : whole;
  },
);

/**
 * Returns true if the counts belong to an earlier run. If the record has lost its description, its run is unknown, and
 * the counts are treated as counts of the present run.
 */
function areOfEarlierRun({ run }: { readonly run: unknown }, plan: Plan): boolean {
  const recorded = recordedRunIn(plan)?.run;
  return recorded !== undefined && !(isGeneration(run) && run >= recorded);
}

/**
 * Returns a completed Plan as still running if some of its targets have not ended. A leader that
 * does not know StatusShards completes a Plan as soon as the listed targets are done.
 */
function withRetries(whole: Plan): Plan {
  if (phaseOfPlan(whole.status?.state) !== 'done') return whole;
  const isOpen = listsOf(whole).some(({ entries }) =>
    entries.some(({ state }) => state === TARGET_STATES.pending),
  );
  if (!isOpen || !whole.status) return whole;
  return { ...whole, status: { ...whole.status, state: PLAN_STATES.schedulableWait } };
}

/** Returns the StatusShards in order, with undefined in place of each one that the world does not contain. */
export function shardsOf(reference: ShardReference, world: World): (StatusShard | undefined)[] {
  return Array.from({ length: reference.count }, (_, index) =>
    world.get(statusShards, shardName(reference, index)),
  );
}

/**
 * Returns the Plan with the targets of the StatusShards. If a target has an entry in the Plan and in its StatusShard,
 * the entry in the Plan is used, because the Plan is written after the StatusShard.
 */
function withTargets(plan: Plan, shards: readonly StatusShard[]): Plan {
  return withLists(plan, ({ command, list, entries }) => {
    const own = shards.filter((shard) => shard.command === command && shard.list === list);
    const listed = new Map(entries.map((entry) => [entry.name, entry]));
    return own.flatMap(entriesOf).map((entry) => listed.get(entry.name) ?? entry);
  });
}

export function entriesOf({ settled = [], pending, since }: StatusShard): TargetStatus[] {
  return [
    ...settled.flatMap((group) =>
      group.targets.map((name) => ({
        name,
        state: group.state,
        lastUpdatedTimestamp: group.since,
      })),
    ),
    ...pending.map((name) => ({ name, state: TARGET_STATES.pending, lastUpdatedTimestamp: since })),
  ];
}
