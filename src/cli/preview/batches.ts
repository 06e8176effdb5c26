/** Computes in which batches the targets of a plan would start, and how long the plan would take. */

import { settle } from '../../engine/assess/advance.ts';
import { assess } from '../../engine/assess/assess.ts';
import { censusFor, nodesAllowedAway } from '../../engine/gates/types.ts';
import { openingFor } from '../../engine/gates/window-open.ts';
import { isFinal, type Target, targetsIn, withStages } from '../../engine/model/rollout.ts';
import type { RolloutPolicy } from '../../engine/policy/rollout-policy.ts';
import { groupsOf } from '../../engine/schedule/order.ts';
import { wavesOf } from '../../engine/schedule/waves.ts';
import { decodeReport, decodeSignal } from '../../signal/annotations.ts';
import { rfc3339 } from '../../util/clock.ts';
import { nextStart } from '../../util/maintenance-windows.ts';
import type { HoldJson, ShownPlan, StageJson } from '../status/json-form.ts';
import type { Inspection } from '../status/observe.ts';
import { isMoving, timesIn } from '../status/sentences.ts';

export interface StagePreview extends Omit<StageJson, 'targets' | 'active'> {
  /** The number of targets that are done. */
  readonly done: number;
  /** Names of pending targets that already run the version. They are done within a second after their start. */
  readonly there: readonly string[];
  readonly moving: readonly string[];
  /** The pending targets that people hold. They are in no batch. */
  readonly held: readonly HeldTarget[];
  /** The batches of the other pending targets, in order. There are no batches if no target will start. */
  readonly batches: readonly Batch[];
}

export interface HeldTarget extends HoldJson {
  readonly name: string;
}

/** The targets that may be in progress at the same time. The slots and `maxUnavailable` limit their number. */
export interface Batch {
  /** The number of the wave of the policy, counted from 1; absent if the policy has no waves. */
  readonly wave?: number;
  /** True if the wave needs an approval that nobody has given. No target of the batch starts without it. */
  readonly needsApproval?: true;
  readonly nodes: readonly string[];
}

export function stagePreviews(
  { stages, unapproved = [] }: Pick<ShownPlan, 'stages' | 'unapproved'>,
  inspection: Inspection,
  now: number,
): StagePreview[] {
  const { snapshot, policy } = inspection;
  const next = settle(assess(snapshot, policy, now));
  const isOver = isFinal(next.snapshot.rollout) || next.isStopping;
  const room = roomOf(inspection);
  return stages.map(({ targets, active: _active, ...stage }, index) => {
    const pending = targets.filter(({ phase }) => phase === 'pending');
    const there = pending.filter(({ isThere }) => isThere === true).map(({ name }) => name);
    const held = pending.flatMap(({ name, held }) =>
      held === undefined || there.includes(name) ? [] : { name, ...held },
    );
    const aside = new Set([...there, ...held.map(({ name }) => name)]);
    const names = new Set(pending.map(({ name }) => name)).difference(aside);
    const recorded = snapshot.rollout.stages[index];
    const waiting = (recorded?.targets ?? []).filter(({ name }) => names.has(name));
    return {
      ...stage,
      done: targets.filter(({ phase }) => phase === 'done').length,
      there,
      moving: targets.filter(isMoving).map(({ name }) => name),
      held,
      batches:
        isOver || !recorded
          ? []
          : groupsOf(inspection, recorded, waiting).flatMap((group) => {
              const wave = wavesOf(inspection, recorded)?.of.get(group[0]?.key ?? '');
              const isHeld = wave !== undefined && unapproved.includes(wave + 1);
              return batchesOf(group, Math.max(1, stage.maxInFlight), room).map((nodes) => ({
                ...(wave !== undefined && { wave: wave + 1 }),
                ...(isHeld && { needsApproval: true as const }),
                nodes,
              }));
            }),
    };
  });
}

interface Room {
  /** The number of further nodes that may become unavailable at the same time. */
  readonly nodes: number;
  /** Returns true if a target with this name is one of the nodes that the limit counts. */
  readonly counts: (name: string) => boolean;
}

function roomOf({ snapshot, policy }: Inspection): Room {
  const { maxUnavailable } = policy;
  const census = censusFor(snapshot, policy);
  if (!census || !maxUnavailable) return { nodes: Number.POSITIVE_INFINITY, counts: () => false };
  const { all, unavailable } = census;
  const moving = new Set(targetsIn(snapshot.rollout, 'intended').map(({ name }) => name));
  const away = [...unavailable].filter((name) => !moving.has(name)).length;
  // The value is at least one, even if no further node may become unavailable now. One node can start when another node
  // becomes available again.
  const nodes = Math.max(1, nodesAllowedAway(maxUnavailable, all.size) - away);
  return { nodes, counts: (name: string) => all.has(name) && !unavailable.has(name) };
}

function batchesOf(pending: readonly Target[], size: number, room: Room): string[][] {
  const batches: string[][] = [];
  for (let left = pending.map(({ name }) => name); left.length > 0; ) {
    const batch: string[] = [];
    let free = room.nodes;
    left = left.filter((name) => {
      const cost = room.counts(name) ? 1 : 0;
      if (batch.length === size || cost > free) return true;
      batch.push(name);
      free -= cost;
      return false;
    });
    batches.push(batch);
  }
  return batches;
}

export interface Duration extends Fit {
  /** The time in milliseconds that the work takes, without waits. */
  readonly ms: number;
  readonly perTargetMs: number;
  /**
   * The source of `perTargetMs`. `measured`: nine of ten measured nodes took at most this time in their last update.
   * `assumed`: no node has reported a time.
   */
  readonly basis: 'measured' | 'assumed';
  /** The number of measured nodes. */
  readonly samples: number;
  /** True if the policy or the plan has windows or blackouts. */
  readonly inWindows?: boolean;
}

/**
 * The time in milliseconds from the signal of a k0s node to its last report, if there is nothing to drain and the
 * download is very small (docs/internals/benchmark.md).
 */
const ASSUMED_MS = 20_000;

/**
 * The time in milliseconds from the signal until the agent reports that the node is done. Applies to a node that
 * already runs the version.
 */
const THERE_MS = 1000;

/**
 * Returns how long all batches take, one after the other; undefined if no target will start or finish, or if another
 * controller decides how many of them start together.
 */
export function durationOf(
  stages: readonly StagePreview[],
  inspection: Inspection,
  now: number,
): Duration | undefined {
  const isOpen = ({ batches }: StagePreview): boolean => batches.length > 0;
  if (stages.some((stage) => stage.chosenBy !== undefined && isOpen(stage))) return undefined;
  const spent = measured(inspection);
  // A dialect without agents has no typical time that could be assumed.
  if (spent.length === 0 && !inspection.dialect.agents) return undefined;
  const perTargetMs = spent[Math.ceil(spent.length * 0.9) - 1] ?? ASSUMED_MS;
  const batches = stages.flatMap(({ there, batches }) => [
    ...(there.length > 0 ? [{ ms: THERE_MS, nodes: 0 }] : []),
    ...batches.map(({ nodes }) => ({ ms: perTargetMs, nodes: nodes.length })),
  ]);
  if (batches.length === 0) return undefined;
  const underWay = stages.filter(({ moving }) => moving.length > 0).length * perTargetMs;
  const ms = batches.reduce((sum, batch) => sum + batch.ms, underWay);
  const basis = spent.length > 0 ? 'measured' : 'assumed';
  const { policy } = inspection;
  const isLimited =
    policy.windows.length + policy.blackouts.length + (policy.planWindows ?? []).length > 0;
  return {
    ms,
    perTargetMs,
    basis,
    samples: spent.length,
    ...(isLimited && { inWindows: true, ...fitInto(batches, inspection, now + underWay) }),
  };
}

type TimedBatch = { readonly ms: number; readonly nodes: number };
interface Fit {
  /**
   * The next window. `from` is the RFC 3339 time at which it opens. `nodes` is the number of nodes that fit into it,
   * and `of` is the number of all nodes.
   */
  readonly window?: { readonly from: string; readonly nodes: number; readonly of: number };
  readonly doneAt?: string;
}

/**
 * Places the batches into the windows of the policy. A batch starts only if it can end before its window closes. If a batch fits into no
 * window, the result has no `doneAt`.
 */
function fitInto(
  batches: readonly TimedBatch[],
  {
    policy,
    snapshot: {
      plan: { controls },
    },
  }: Inspection,
  now: number,
): Fit {
  const of = batches.reduce((sum, { nodes }) => sum + nodes, 0);
  const { settleMs = 0, waves = [] } = policy;
  let from: number | undefined;
  let time = now;
  /** Number of nodes in the batches that fit into the next window. */
  let fitting = 0;
  let isNext = true;
  for (const { ms, nodes } of batches) {
    // `start` is undefined if no window is long enough for the batch.
    const opening = openingFor(policy, controls, time);
    const start = opening === undefined ? startOf(policy, time, ms) : time;
    if (start === undefined)
      return from === undefined ? {} : { window: { from: rfc3339(from), nodes: fitting, of } };
    // If a batch starts immediately after the previous batch, both are in the same window.
    isNext &&= from === undefined || start === time;
    from ??= start;
    if (isNext) fitting += nodes;
    // The next batch starts only after the settle time of this batch.
    time = start + ms + settleMs;
  }
  const settled = time + waves.reduce((sum, wave) => sum + (wave.settleMs ?? 0), 0);
  return { window: { from: rfc3339(from ?? now), nodes: fitting, of }, doneAt: rfc3339(settled) };
}

/**
 * The maximum number of openings of the windows to try. If the plan's own windows and the windows of the policy are
 * never open at the same time within so many openings, they exclude each other.
 */
const MOST_OPENINGS = 50;

function startOf(policy: RolloutPolicy, from: number, ms: number): number | undefined {
  const own = { windows: policy.planWindows ?? [], blackouts: [] };
  let time = from;
  for (let opening = 0; opening < MOST_OPENINGS; opening++) {
    const start = nextStart(policy, time, ms);
    // The plan's own windows limit only when targets start, so the duration is 0.
    const both = start === undefined ? undefined : nextStart(own, start, 0);
    if (both === undefined || both === start) return both;
    time = both;
  }
  return undefined;
}

/**
 * Returns the durations of the last successful update of each target in milliseconds, sorted. Such an update may belong
 * to an earlier plan.
 */
function measured({ dialect, world, snapshot }: Inspection): number[] {
  const reports = withStages(snapshot.rollout).flatMap(({ stage, target }) => {
    const annotations = dialect.objectOf(stage, target, world)?.metadata.annotations;
    const signal = decodeSignal(annotations);
    return signal?.status?.status === 'Completed'
      ? (decodeReport(annotations, signal.created) ?? [])
      : [];
  });
  return timesIn(reports);
}
