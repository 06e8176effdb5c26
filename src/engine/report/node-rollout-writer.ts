/**
 * Writes a NodeRollout for each plan in the background, so that no turn waits for it or fails because of it. Decisions
 * read from NodeRollouts only the decisions of people and the recorded runs. If the cluster does not have the kind, or
 * Refit does not have the right to write it, plans are still carried out.
 */
import { nodeRollouts } from '../../api/kinds.ts';
import type { NodeRollout, NodeRolloutStatus } from '../../api/refit/node-rollout.ts';
import { apiVersionOf, keyOf } from '../../kube/resources.ts';
import { ifFound, isForbidden, isMissingRight, isNotFound } from '../../kube/status-error.ts';
import { type Clock, sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { type Logger, sparingly } from '../../util/log.ts';
import { soonest } from '../../util/soonest.ts';
import { aborted } from '../../util/waits.ts';
import { type Place, placeOf } from '../contract/node-rollout-place.ts';
import { plansAt } from '../contract/plan-objects.ts';
import type { PlanReading } from '../explain/plan-reading.ts';
import { settledAfter } from '../explain/remarkable-waits.ts';
import type { Source } from '../model/rollout.ts';
import { DIALECT_LABEL, patchOf, showsAll } from './node-rollout-object.ts';
import { type Outside, type Shown, statusOf, statusOfDeleted } from './node-rollout-status.ts';
import { type SweepParts, sweep } from './node-rollout-sweep.ts';
import { traceIdOf } from './spans.ts';
import type { Turn } from './turn.ts';

export interface NodeRolloutParts extends SweepParts {
  readonly log: Logger;
  /** True if traces of rollouts are sent. Then their ids are shown. */
  readonly isTraced?: boolean;
}

export interface NodeRolloutWriter {
  /**
   * Shows the turn of a plan, as `reading` says. `outside` is the state of the servers outside of the cluster. Returns the milliseconds after which the plan must be shown again; undefined if nothing is
   * left to write.
   */
  show(turn: Turn, reading: PlanReading, outside?: Outside): number | undefined;
  /** Shows that the plan with this key was deleted. */
  gone(key: string): void;
  /** Forgets what was read and written. Another leader may have written since. */
  begin(): void;
  /** Resolves once no NodeRollout is being written. */
  flush(): Promise<void>;
  /** The name of this part of the process, for logs. */
  readonly name: string;
  /** Runs until `abort`, and then writes what was not written yet, at most for some seconds. */
  run(abort: AbortSignal): Promise<void>;
}

/**
 * The minimum time between two writes for one plan, in milliseconds. If the phase, a reason or the status of a
 * condition has changed, the write does not wait.
 */
const BATCH_MS = 20_000;
/** Milliseconds after which the writer reads a NodeRollout again, because people may have deleted it or changed its spec. */
const REREAD_MS = 300_000;
/** Milliseconds until the next attempt to write if the kind, the namespace or the right is missing. */
const REFUSED_MS = 600_000;
/** Milliseconds between two searches for NodeRollouts of deleted plans. */
const SWEEP_MS = 3_600_000;
/** The maximum time after the end of a term during which the last states of plans are still written, in milliseconds. */
const LAST_MS = 5_000;

/** One plan whose NodeRollout is written. */
interface Entry {
  readonly place: Place;
  source: Source;
  shown: Shown;
  isDeleted: boolean;
  /** The NodeRollout as it was read or written last; undefined if that is not known. */
  known?: NodeRollout | undefined;
  readAt: number;
  writtenAt: number;
  writing?: Promise<void> | undefined;
}

/** Returns true if another object represents the plan with this NodeRollout. */
function isShownElsewhere({ dialect, plans }: NodeRolloutParts, place: Place): boolean {
  if (dialect.planObjects?.representing === undefined) return false;
  return plansAt(dialect, plans(), place).length > 0;
}

/** Without the kind or the right, nobody wants NodeRollouts. A quota or an admission rule may be a surprise. */
function levelOf(refusal: unknown): 'info' | 'warn' {
  return isMissingRight(refusal) || isNotFound(refusal) ? 'info' : 'warn';
}

export function nodeRolloutWriter(parts: NodeRolloutParts): NodeRolloutWriter {
  const { dialect, clock, log } = parts;
  const entries = new Map<string, Entry>();
  const background = new Set<Promise<void>>();
  const shouldLog = sparingly(clock);
  let refusedUntil = Number.NEGATIVE_INFINITY;
  let isRefusalLogged = false;
  let sweepAt = Number.NEGATIVE_INFINITY;

  const onError = (error: unknown): void => {
    const problem = messageOf(error);
    if (isForbidden(error) || isNotFound(error)) {
      refusedUntil = clock.monotonic() + REFUSED_MS;
      if (!isRefusalLogged) log[levelOf(error)]('NodeRollouts are not written', { problem });
      isRefusalLogged = true;
    } else if (shouldLog(problem)) log.warn('cannot write a NodeRollout', { problem });
  };
  const inBackground = (work: () => Promise<void>): Promise<void> => {
    const running: Promise<void> = work()
      .catch(onError)
      .finally(() => background.delete(running));
    background.add(running);
    return running;
  };
  const start = (entry: Entry): void => {
    entry.writing ??= inBackground(async () => await bringUpToDate(parts, entry)).finally(() => {
      entry.writing = undefined;
      if (entry.known && refusedUntil <= clock.monotonic()) isRefusalLogged = false;
    });
  };
  const isRefused = (): boolean => clock.monotonic() < refusedUntil;
  const sweepWhenDue = (): void => {
    if (isRefused() || clock.monotonic() < sweepAt) return;
    sweepAt = clock.monotonic() + SWEEP_MS;
    void inBackground(async () => await sweep(parts));
  };

  return {
    name: 'node-rollouts',
    show(turn, reading, outside) {
      const { plan, assessment } = turn;
      const place = placeOf(dialect, plan);
      if (place === undefined) return undefined;
      sweepWhenDue();
      const { source } = assessment.snapshot.rollout;
      const shown = shownIn(parts, turn, reading, outside);
      const entry = entries.getOrInsertComputed(keyOf(plan), () => newEntry(place, source, shown));
      Object.assign(entry, { source, shown, isDeleted: false });
      if (isRefused()) return undefined;
      const dueMs = dueAfter(entry, clock);
      if (dueMs === 0) start(entry);
      return soonest([dueMs === 0 ? undefined : dueMs, settledAfter(reading.waits, reading.now)]);
    },
    gone(key) {
      const entry = entries.get(key);
      entries.delete(key);
      if (isRefused()) return;
      sweepWhenDue();
      if (entry === undefined || isShownElsewhere(parts, entry.place)) return;
      entry.isDeleted = true;
      void inBackground(async () => {
        await entry.writing;
        await bringUpToDate(parts, entry);
      });
    },
    begin() {
      entries.clear();
      sweepAt = Number.NEGATIVE_INFINITY;
    },
    flush: async () => {
      while (background.size > 0) await Promise.all(background);
    },
    async run(abort) {
      await aborted(abort);
      for (const entry of isRefused() ? [] : entries.values())
        if (dueAfter(entry, clock) !== undefined) start(entry);
      await endedOrLate(background, clock);
    },
  };
}

/** Returns what the NodeRollout shows, with the id of the trace of the rollout if traces are sent. */
function shownIn(
  { isTraced = false }: Pick<NodeRolloutParts, 'isTraced'>,
  { assessment }: Turn,
  reading: PlanReading,
  outside?: Outside,
): Shown {
  const traceId = isTraced ? traceIdOf(assessment.snapshot.rollout) : undefined;
  return { reading, outside: { ...outside, traceId } };
}

/** Resolves when all promises in `work` have settled, or after some seconds. */
async function endedOrLate(work: Iterable<Promise<void>>, clock: Clock): Promise<void> {
  const over = new AbortController();
  const late = sleep(clock, LAST_MS, over.signal).catch(() => undefined);
  await Promise.race([Promise.all(work), late]);
  over.abort();
}

function newEntry(place: Place, source: Source, shown: Shown): Entry {
  const never = Number.NEGATIVE_INFINITY;
  return { place, source, shown, isDeleted: false, readAt: never, writtenAt: never };
}

/**
 * Returns the milliseconds until the NodeRollout must be written: 0 if the write is due now, undefined if the
 * NodeRollout shows everything.
 */
function dueAfter(entry: Entry, clock: Clock): number | undefined {
  const { known, shown, readAt, writtenAt, writing } = entry;
  if (known === undefined || clock.monotonic() - readAt >= REREAD_MS) return 0;
  const next = statusOf(shown, known, clock.now());
  if (isAbout(entry, known) && showsAll(next, known.status)) return undefined;
  if (writing) return BATCH_MS;
  if (headline(next) !== headline(known.status)) return 0;
  return Math.max(0, writtenAt + BATCH_MS - clock.monotonic());
}

function isAbout({ source }: Entry, { spec, status }: NodeRollout): boolean {
  return spec.plan.uid === source.uid && status?.planDeleted === undefined;
}

/** Returns as text the part of the status whose changes are written at once, without waiting for BATCH_MS. */
function headline(status: NodeRolloutStatus | undefined): string {
  const conditions = status?.conditions?.map(({ type, status: is, reason }) =>
    [type, is, reason].join(' '),
  );
  const checks = status?.checks?.map(({ name, state }) => `${name} ${state}`);
  const hooks = status?.hooks?.map(({ id, state }) => `${id} ${state}`);
  const { phase, version, waiting, history } = status ?? {};
  // The next signal of a controller removes its report, so the snapshot in the report is recorded at once.
  const snapshots = history?.[0]?.snapshots?.map(({ node, at }) => `${node} ${at}`);
  const lists = [...(conditions ?? []), ...(checks ?? []), ...(hooks ?? []), ...(snapshots ?? [])];
  return [phase, version, waiting?.reason, ...lists].join();
}

/** Reads the NodeRollout if its content is unknown, creates it if it is missing, and writes what it does not show yet. */
async function bringUpToDate(parts: NodeRolloutParts, entry: Entry): Promise<void> {
  const { client, clock } = parts;
  const { namespace, name } = entry.place;
  if (entry.known === undefined || clock.monotonic() - entry.readAt >= REREAD_MS) {
    entry.known = await ifFound(client.get(nodeRollouts, name, { namespace }));
    entry.readAt = clock.monotonic();
  }
  if (entry.known === undefined && entry.isDeleted) return;
  entry.known ??= await create(parts, entry);
  const before = entry.known;
  if (!entry.isDeleted && before.spec.plan.uid !== entry.source.uid)
    entry.known = await assignTo(parts, entry);
  const next = nextStatus(entry, { ...before, metadata: entry.known.metadata }, clock.now());
  if (showsAll(next, entry.known.status)) return;
  const patch = { status: patchOf(next, entry.known.status) };
  const options = { type: 'merge', subresource: 'status', namespace } as const;
  const written = await ifFound(client.patch(nodeRollouts, name, patch, options));
  // If `written` is undefined, somebody has deleted the NodeRollout. Then the next turn creates it again.
  entry.known = written;
  entry.writtenAt = clock.monotonic();
}

/**
 * Returns the next status of the NodeRollout. If the plan was deleted, the status includes the last state of the plan.
 * This state may not have been written yet, because changes are collected for some seconds.
 */
function nextStatus(entry: Entry, known: NodeRollout, now: number): NodeRolloutStatus {
  if (!entry.isDeleted) return statusOf(entry.shown, known, now);
  const last = isAbout(entry, known) ? statusOf(entry.shown, known, now) : known.status;
  return statusOfDeleted({ ...known, ...(last && { status: last }) }, now);
}

async function create({ dialect, client }: NodeRolloutParts, entry: Entry): Promise<NodeRollout> {
  const { namespace, name } = entry.place;
  const labels = { 'app.kubernetes.io/managed-by': 'refit', [DIALECT_LABEL]: dialect.name };
  const object: NodeRollout = {
    apiVersion: apiVersionOf(nodeRollouts),
    kind: nodeRollouts.kind,
    metadata: { name, namespace, labels },
    spec: { plan: planIn(entry) },
  };
  return await client.create(nodeRollouts, object, { namespace });
}

function planIn({ source: { apiVersion, kind, uid }, place }: Entry): NodeRollout['spec']['plan'] {
  return { apiVersion, kind, ...place.subject, uid };
}

/**
 * Assigns the NodeRollout to another plan with the same name. The decisions of people about the former plan do not
 * apply to the new plan.
 */
async function assignTo({ client }: NodeRolloutParts, entry: Entry): Promise<NodeRollout> {
  const { namespace, name } = entry.place;
  const patch = { spec: { plan: planIn(entry), approvals: null, accepted: null } };
  return await client.patch(nodeRollouts, name, patch, { type: 'merge', namespace });
}
