/**
 * Sends messages about plans to receivers in the background, so that no turn waits for a receiver or fails because of
 * it. Each message is recorded in the NodeRollout before it is sent, and is removed from the record afterwards. So the
 * next leader sends the messages that this leader did not send. A message is sent twice only if the leader crashes
 * after it sent the message and before it removed the message from the record.
 */
import { nodeRollouts } from '../../api/kinds.ts';
import type { NodeRolloutStatus } from '../../api/refit/node-rollout.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { ifFound, isForbidden, isNotFound } from '../../kube/status-error.ts';
import type { Deliver } from '../../notify/deliver.ts';
import type { Delivery, Receiver } from '../../notify/receivers.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { sameJson } from '../../util/json.ts';
import { createListeners } from '../../util/listeners.ts';
import { type Logger, sparingly } from '../../util/log.ts';
import { soonest } from '../../util/soonest.ts';
import { aborted } from '../../util/waits.ts';
import type { Place } from '../contract/node-rollout-place.ts';
import { because, type ReportedEvent } from '../model/reasons.ts';
import { type Standing, toldOf } from './notifications.ts';
import {
  laneOf,
  messageIdOf,
  noteIn,
  type Outbox,
  outboxFrom,
  outboxOf,
  type Queued,
  recordOf,
  wasUnnotified,
  withBatch,
  withNews,
  without,
} from './outbox.ts';

export interface NotifierParts {
  /** The client of the cluster that has the NodeRollouts. */
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'notified'>;
  readonly deliver: Deliver;
  recordEvent(plan: KubeObject, event: ReportedEvent): void;
}

/** A plan as the notifier sees it in one turn. */
export interface FollowedPlan {
  readonly plan: KubeObject;
  readonly place: Place;
  readonly policy: string;
  readonly receivers: readonly Receiver[];
  readonly standing: Standing;
}

export interface Notifier {
  readonly name: string;
  /** Queues the new notifications for the receivers. The key names the plan among the plans of all dialects. */
  follow(key: string, told: FollowedPlan): void;
  /** Stops creating notifications about the plan with this key. Notifications in the queue are still sent. */
  forget(key: string): void;
  /** Returns whether the receivers of the plan accept messages; undefined if the plan has no receivers. */
  deliveryOf(key: string): Delivery | undefined;
  /** Calls the listener when the delivery of any plan changes. The returned function removes the listener. */
  onChange(listener: () => void): () => void;
  /** Sends until `stop` aborts. Before and after that nothing is sent. */
  run(stop: AbortSignal): Promise<void>;
}

/** Milliseconds between two messages to one receiver, and before the first retry. */
export const PACE_MS = 60_000;
/** The longest pause between two attempts, in milliseconds. */
const LONGEST_PAUSE_MS = 15 * 60_000;
/** Milliseconds after which a notification is discarded if its receiver has not accepted it. */
export const GIVE_UP_MS = 6 * 60 * 60_000;
/** The maximum number of notifications in one message. */
const MOST_IN_MESSAGE = 20;
/** Milliseconds until the next attempt to write the record. */
const RECORD_AGAIN_MS = 2_000;
/** Milliseconds after which notifications are sent although they cannot be recorded, because the kind or the right is missing. */
const UNRECORDED_MS = 30_000;

interface Entry {
  told: FollowedPlan;
  /**
   * The states of the plan that were not yet compared with the state in the last notifications, with the oldest state
   * first.
   */
  standings: Standing[];
  /** The outbox with the changes of this leader; undefined until the record was read. */
  outbox?: Outbox;
  /** The outbox as the NodeRollout records it; undefined until it was read. */
  recorded?: Outbox;
  syncing?: Promise<void> | undefined;
  /**
   * The time since which every write of the record has failed, in monotonic milliseconds; undefined if the last write
   * succeeded.
   */
  unrecordedSince?: number | undefined;
  againAt: number;
  isGone: boolean;
  /** True if this leader has followed the plan while its policy had no receivers. */
  readonly isNewlyNotified: boolean;
}

/** One receiver of one policy. */
interface Lane {
  /**
   * The time at which the last message to the receiver was sent or prepared, in milliseconds since the Unix epoch;
   * -Infinity before the first message.
   */
  lastTry: number;
  failures: number;
  /** The id of the message that this leader has recorded and may send now; undefined if there is none. */
  ready?: string | undefined;
  sending?: Promise<void> | undefined;
  problem?: string | undefined;
}

export function createNotifier(parts: NotifierParts): Notifier {
  return new BackgroundNotifier(parts);
}

class BackgroundNotifier implements Notifier {
  readonly name = 'notifications';
  readonly #parts: NotifierParts;
  readonly #entries = new Map<string, Entry>();
  /** The keys of the followed plans whose policies have no receivers. */
  readonly #unnotified = new Set<string>();
  readonly #lanes = new Map<string, Lane>();
  readonly #listeners = createListeners();
  readonly #shouldLog: (text: string) => boolean;
  #stop: AbortSignal | undefined;
  #cancel: (() => void) | undefined;

  constructor(parts: NotifierParts) {
    this.#parts = parts;
    this.#shouldLog = sparingly(parts.clock);
  }

  follow(key: string, told: FollowedPlan): void {
    if (told.receivers.length === 0) {
      this.#entries.delete(key);
      this.#unnotified.add(key);
      return;
    }
    const isNewlyNotified = this.#unnotified.delete(key);
    const entry = this.#entries.getOrInsertComputed(key, () => ({
      told,
      standings: [],
      againAt: Number.NEGATIVE_INFINITY,
      isGone: false,
      isNewlyNotified,
    }));
    entry.told = told;
    const last = entry.standings.at(-1);
    const known = last === undefined ? entry.outbox?.told : toldOf(last);
    if (sameJson(known, toldOf(told.standing))) return;
    entry.standings.push(told.standing);
    this.#tick();
  }

  forget(key: string): void {
    const entry = this.#entries.get(key);
    if (entry) entry.isGone = true;
    this.#unnotified.delete(key);
    this.#tick();
  }

  deliveryOf(key: string): Delivery | undefined {
    const { told } = this.#entries.get(key) ?? {};
    if (told === undefined) return undefined;
    const problems = told.receivers.flatMap((receiver) => {
      const problem = this.#lanes.get(laneOf(told.policy, receiver))?.problem;
      return problem === undefined
        ? []
        : [`receiver ${receiver.name} of UpgradePolicy ${told.policy}: ${problem}`];
    });
    if (problems.length > 0) return { isGood: false, message: problems.join('; ') };
    return { isGood: true, message: 'no receiver has refused a message' };
  }

  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  async run(stop: AbortSignal): Promise<void> {
    this.#stop = stop;
    this.#tick();
    await aborted(stop);
    this.#stop = undefined;
    this.#cancel?.();
    await Promise.all([...this.#entries.values()].map(async ({ syncing }) => await syncing));
    await Promise.all([...this.#lanes.values()].map(async ({ sending }) => await sending));
    this.#entries.clear();
    this.#unnotified.clear();
    this.#lanes.clear();
  }

  /** Starts the writes of records and the messages that are due, and sets a timer for the next writes and messages. */
  #tick(): void {
    if (this.#stop === undefined) return;
    const { clock } = this.#parts;
    this.#cancel?.();
    const waits = [
      ...[...this.#entries].map(([key, entry]) => this.#sync(key, entry)),
      ...[...this.#queues()].map(([lane, queue]) => this.#serve(lane, queue)),
    ];
    const ms = soonest(waits);
    this.#cancel = ms === undefined ? undefined : clock.schedule(ms, () => this.#tick());
  }

  /**
   * Updates the record of the plan in the background. Returns the milliseconds until the next attempt; undefined if no
   * attempt is planned.
   */
  #sync(key: string, entry: Entry): number | undefined {
    if (entry.syncing) return undefined;
    const isOpen = entry.standings.length > 0 || entry.outbox !== entry.recorded;
    if (!isOpen) {
      if (entry.isGone && (entry.outbox?.queue.length ?? 0) === 0) this.#entries.delete(key);
      return undefined;
    }
    const leftMs = entry.againAt - this.#parts.clock.monotonic();
    if (leftMs > 0) return leftMs;
    entry.syncing = this.#bringUpToDate(entry).finally(() => {
      entry.syncing = undefined;
      this.#tick();
    });
    return undefined;
  }

  async #bringUpToDate(entry: Entry): Promise<void> {
    const { client, clock } = this.#parts;
    const { name, namespace } = entry.told.place;
    try {
      if (entry.outbox === undefined) {
        const found = await ifFound(client.get(nodeRollouts, name, { namespace }));
        openOutbox(entry, found?.status);
        for (const { receiver, at } of entry.recorded?.tried ?? [])
          this.#noteTry(receiver, Date.parse(at));
      }
      const { policy, receivers } = entry.told;
      for (const standing of entry.standings.splice(0))
        entry.outbox = withNews(entry.outbox ?? outboxOf(), standing, policy, receivers);
      const { outbox } = entry;
      if (outbox === undefined || outbox === entry.recorded) return;
      const patch = { status: { notifications: recordOf(outbox) } };
      const options = { type: 'merge', subresource: 'status', namespace } as const;
      await client.patch(nodeRollouts, name, patch, options);
      entry.recorded = outbox;
      entry.unrecordedSince = undefined;
    } catch (error) {
      this.#onUnrecorded(entry, error);
    }
    entry.againAt =
      entry.unrecordedSince === undefined
        ? Number.NEGATIVE_INFINITY
        : clock.monotonic() + RECORD_AGAIN_MS;
  }

  #onUnrecorded(entry: Entry, error: unknown): void {
    const { clock, log } = this.#parts;
    entry.unrecordedSince ??= clock.monotonic();
    const isLasting = isForbidden(error) || isNotFound(error);
    if (isLasting && clock.monotonic() - entry.unrecordedSince < UNRECORDED_MS) return;
    const problem = messageOf(error);
    if (this.#shouldLog(problem)) log.warn('cannot record notifications', { problem });
    if (!isLasting) return;
    // If the kind or the right is missing, there is no record. The leader then still sends notifications, but if it
    // crashes, the unsent notifications are lost.
    const outbox = entry.outbox ?? openOutbox(entry, undefined);
    entry.recorded = outbox;
  }

  #noteTry(lane: string, at: number): void {
    const known = this.#laneOf(lane);
    // A leader with a fast clock may have recorded a time in the future, which must not make the receiver wait longer.
    if (!Number.isNaN(at))
      known.lastTry = Math.max(known.lastTry, Math.min(at, this.#parts.clock.now()));
  }

  #laneOf(lane: string): Lane {
    return this.#lanes.getOrInsertComputed(lane, () => ({
      lastTry: Number.NEGATIVE_INFINITY,
      failures: 0,
    }));
  }

  /** Returns, for each receiver, the plans that have notifications for this receiver. */
  #queues(): Map<string, Entry[]> {
    const queues = new Map<string, Entry[]>();
    for (const entry of this.#entries.values())
      for (const lane of new Set(entry.outbox?.queue.map(({ receiver }) => receiver)))
        queues.getOrInsertComputed(lane, () => []).push(entry);
    return queues;
  }

  /**
   * Sends the next message to a receiver if the message is due. Returns the milliseconds until the receiver must be
   * served again; undefined while a message is being sent or recorded.
   */
  #serve(name: string, entries: readonly Entry[]): number | undefined {
    const { clock } = this.#parts;
    const lane = this.#laneOf(name);
    if (lane.sending) return undefined;
    const receiver = this.#receiverOf(name);
    if (receiver === undefined) {
      // If the policy no longer names the receiver, its notifications are dropped.
      for (const entry of entries) this.#replace(entry, ({ receiver: to }) => to === name);
      return 0;
    }
    if (lane.ready === undefined) {
      const pauseMs = pauseAfter(lane.failures);
      const leftMs = lane.lastTry + pauseMs - clock.now();
      // The remaining time cannot be longer than the whole pause, unless the clock was set back since the last message.
      // In that case the message is due now.
      if (leftMs > 0 && leftMs <= pauseMs) return leftMs;
      this.#prepare(name, lane, entries);
      return 0;
    }
    const batch = lane.ready;
    const isPart = (each: Queued): boolean => each.receiver === name && each.batch === batch;
    const parts = entries.filter(({ outbox }) => outbox?.queue.some(isPart) === true);
    if (parts.some(({ outbox, recorded }) => outbox !== recorded)) return undefined;
    lane.ready = undefined;
    // No plan has notifications of this message for this receiver any more, so there is nothing to send. Notifications
    // about other plans are in the next message.
    if (parts.length === 0) return 0;
    lane.sending = this.#send(name, receiver, parts, isPart).finally(() => {
      lane.sending = undefined;
      this.#tick();
    });
    return undefined;
  }

  /**
   * Puts the next notifications into one message. The message is sent once the record contains it. A message that a leader has tried to
   * send before does not change.
   */
  #prepare(name: string, lane: Lane, entries: readonly Entry[]): void {
    const { clock } = this.#parts;
    const waiting = entries
      .flatMap(({ outbox }) => outbox?.queue ?? [])
      .filter(({ receiver }) => receiver === name)
      .toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at));
    const tried = waiting.find(({ batch }) => batch !== undefined)?.batch;
    const chosen =
      tried === undefined
        ? waiting.slice(0, MOST_IN_MESSAGE)
        : waiting.filter(({ batch }) => batch === tried);
    const ids = new Set(chosen.map(({ id }) => id));
    const batch = tried ?? messageIdOf(name, chosen);
    const now = clock.now();
    for (const entry of entries)
      if (entry.outbox?.queue.some(({ id, receiver }) => receiver === name && ids.has(id)) === true)
        entry.outbox = withBatch(entry.outbox, name, batch, ids, now);
    lane.ready = batch;
    lane.lastTry = now;
  }

  async #send(
    name: string,
    receiver: Receiver,
    entries: readonly Entry[],
    isPart: (each: Queued) => boolean,
  ): Promise<void> {
    const { deliver, metrics } = this.#parts;
    const lane = this.#laneOf(name);
    const notes = entries.flatMap(({ told, outbox }) =>
      (outbox?.queue ?? []).filter(isPart).map((each) => noteIn(told.standing.plan, each)),
    );
    const policy = name.slice(0, name.lastIndexOf('/'));
    const message = { id: messageIdOf(name, notes), policy, notes };
    const stop = this.#stop ?? AbortSignal.abort();
    const result = await deliver(receiver, message, stop);
    const isTaken = typeof result !== 'string';
    // If the end of the term has cancelled the message, its failure says nothing about the receiver.
    if (stop.aborted && !isTaken) return;
    lane.failures = isTaken ? 0 : lane.failures + 1;
    metrics.notified(name, isTaken ? 'sent' : 'failed');
    if (isTaken) for (const entry of entries) this.#replace(entry, isPart);
    else this.#onProblem(name, result, entries, isPart);
    if (typeof result === 'object') this.#onPart(name, result.partly, entries);
    const problem = typeof result === 'object' ? result.partly : result;
    if (lane.problem === problem) return;
    lane.problem = problem;
    this.#listeners.call();
  }

  /**
   * Reports that some recipients do not get the messages of this receiver. The same problem is reported only once until
   * it changes.
   */
  #onPart(name: string, problem: string, entries: readonly Entry[]): void {
    if (this.#laneOf(name).problem === problem) return;
    for (const entry of entries)
      this.#complain(name, entry, `accepted a message for some recipients only: ${problem}`);
    this.#parts.log.warn('a receiver accepted a message for some recipients only', {
      receiver: name,
      problem,
    });
  }

  #onProblem(
    name: string,
    problem: string,
    entries: readonly Entry[],
    isPart: (each: Queued) => boolean,
  ): void {
    const { clock, log, metrics } = this.#parts;
    const isOld = ({ at }: Queued): boolean => clock.now() - Date.parse(at) >= GIVE_UP_MS;
    for (const entry of entries) {
      const lost = entry.outbox?.queue.filter((each) => isPart(each) && isOld(each)) ?? [];
      lost.forEach(() => metrics.notified(name, 'dropped'));
      this.#replace(entry, (each) => lost.includes(each));
      if (lost.length > 0)
        this.#complain(
          name,
          entry,
          `did not accept a message for 6h, and Refit dropped it: ${problem}`,
        );
      else if (this.#laneOf(name).failures === 1)
        this.#complain(name, entry, `has not accepted a message yet: ${problem}`);
    }
    log.warn('a receiver did not accept a message', { receiver: name, problem });
  }

  #complain(name: string, { told }: Entry, what: string): void {
    const receiver = name.slice(name.lastIndexOf('/') + 1);
    const message = `receiver ${receiver} of UpgradePolicy ${told.policy} ${what}`;
    const reason = because('ReceiverUnreachable', message);
    this.#parts.recordEvent(told.plan, { type: 'Warning', reason });
  }

  #replace(entry: Entry, isOver: (each: Queued) => boolean): void {
    if (entry.outbox) entry.outbox = without(entry.outbox, isOver);
  }

  #receiverOf(name: string): Receiver | undefined {
    for (const { told } of this.#entries.values())
      for (const receiver of told.receivers)
        if (laneOf(told.policy, receiver) === name) return receiver;
    return undefined;
  }
}

/** Sets the outbox of the entry to the outbox that the NodeRollout records, or to a new one if the receivers are new. Returns this outbox. */
function openOutbox(entry: Entry, status: NodeRolloutStatus | undefined): Outbox {
  const recorded = outboxOf(status);
  const [first] = entry.standings;
  entry.recorded = recorded;
  const isNew = first && (entry.isNewlyNotified || wasUnnotified(status, first));
  entry.outbox = isNew ? outboxFrom(first, recorded) : recorded;
  return entry.outbox;
}

function pauseAfter(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, PACE_MS * 2 ** Math.max(0, failures - 1));
}
