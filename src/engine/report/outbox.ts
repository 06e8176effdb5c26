/** Keeps the notifications about one plan that receivers have not taken yet, as plain data. The NodeRollout records these notifications. */
import { hash } from 'node:crypto';
import type { NodeRolloutStatus } from '../../api/refit/node-rollout.ts';
import { MOST } from '../../api/refit/node-rollout.ts';
import type { Notification, NotifiedEvent, Receiver } from '../../notify/receivers.ts';
import { rfc3339 } from '../../util/clock.ts';
import { defined, sameJson } from '../../util/json.ts';
import { NOTIFIED } from './node-rollout-status.ts';
import { notificationsOf, type Standing, type Told, toldOf } from './notifications.ts';

type Recorded = NonNullable<NodeRolloutStatus['notifications']>;
export type Queued = NonNullable<Recorded['queue']>[number];

export interface Outbox {
  /** The state of the plan in its last notifications; undefined if there were no notifications yet. */
  readonly told?: Told | undefined;
  readonly queue: readonly Queued[];
  readonly tried: NonNullable<Recorded['tried']>;
}

export function outboxOf({ notifications = {} }: NodeRolloutStatus = {}): Outbox {
  const { told, queue = [], tried = [] } = notifications;
  return { told, queue, tried };
}

/**
 * Returns the outbox of a plan whose policy has receivers from now on. Nothing that happened before is told, and what
 * was queued for earlier receivers is dropped.
 */
export function outboxFrom(standing: Standing, { tried }: Pick<Outbox, 'tried'>): Outbox {
  return { told: toldOf(standing), queue: [], tried };
}

/**
 * Returns true if a leader has shown the run of the standing while the policy of the plan had no receivers: the
 * NodeRollout has the run, but no condition about receivers.
 */
export function wasUnnotified(
  { history = [], conditions = [] }: NodeRolloutStatus = {},
  { reading: { run, plan } }: Pick<Standing, 'reading'>,
): boolean {
  if (conditions.some(({ type }) => type === NOTIFIED)) return false;
  return history.some((each) => each.id === run?.id && each.planUid === plan.source.uid);
}

/** Returns the outbox in the form in which the status of the NodeRollout records it. */
export function recordOf({ told, queue, tried }: Outbox): Recorded {
  return defined({ told, queue: [...queue], tried: [...tried] });
}

/** Returns the outbox with the messages that must be sent now. Returns the same object if there are none. */
export function withNews(
  outbox: Outbox,
  standing: Standing,
  policy: string,
  receivers: readonly Receiver[],
): Outbox {
  const told = toldOf(standing);
  if (sameJson(told, outbox.told)) return outbox;
  const news = notificationsOf(outbox.told, standing).flatMap(({ id, event, message, at }) =>
    receivers
      .filter(({ events }) => events.includes(event))
      .map((receiver) => ({ id, receiver: laneOf(policy, receiver), event, message, at })),
  );
  return { ...outbox, told, queue: [...outbox.queue, ...news].slice(-MOST.queued) };
}

/** Returns a name for the receiver that no receiver of another policy has. */
export function laneOf(policy: string, { name }: Pick<Receiver, 'name'>): string {
  return `${policy}/${name}`;
}

/**
 * Returns the outbox in which these notifications belong to one message. The message is sent next, and `now`, in
 * milliseconds, is recorded as the time of this attempt.
 */
export function withBatch(
  outbox: Outbox,
  lane: string,
  batch: string,
  ids: ReadonlySet<string>,
  now: number,
): Outbox {
  const isPart = ({ id, receiver }: Queued): boolean => receiver === lane && ids.has(id);
  const others = outbox.tried.filter(({ receiver }) => receiver !== lane);
  return {
    ...outbox,
    queue: outbox.queue.map((each) => (isPart(each) ? { ...each, batch } : each)),
    tried: [...others, { receiver: lane, at: rfc3339(now) }].slice(-MOST.tried),
  };
}

/**
 * Returns the outbox without the notifications for which `isOver` returns true. Returns the same object if there are no
 * such notifications.
 */
export function without(outbox: Outbox, isOver: (each: Queued) => boolean): Outbox {
  const queue = outbox.queue.filter((each) => !isOver(each));
  return queue.length === outbox.queue.length ? outbox : { ...outbox, queue };
}

/** Returns the id of the message with these notifications. It is the same for every leader. */
export function messageIdOf(lane: string, notes: readonly Pick<Notification, 'id'>[]): string {
  const ids = notes.map(({ id }) => id).toSorted();
  return hash('sha256', [lane, ...ids].join(' ')).slice(0, 32);
}

export function noteIn(plan: string, { id, event, message, at }: Queued): Notification {
  return { id, event: event as NotifiedEvent, plan, message, at };
}
