/** Counts equal Events on one object as one series, which is one Event on the server. */
import { defined } from '../util/json.ts';
import { printable } from '../util/printable.ts';
import type { KubeClient } from './client.ts';
import { type Event, events, type KubeObject } from './resources.ts';

/** The content of an Event. */
export interface EventNote {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  /** One sentence for people. It is cut at 1,024 characters, the limit of the server. */
  readonly message: string;
  /**
   * This text becomes a part of the name of the Event. If several processes use the same text, only
   * one of them can create the Event.
   */
  readonly once?: string;
}

/** A series of equal Events on one object, and how many of them the server has. */
export interface Series {
  readonly event: Event;
  count: number;
  /** True if the server has the Event. */
  created: boolean;
  /** The number of failed writes in a row. */
  attempts: number;
}

/**
 * The maximum number of series in memory. If there are more, the series whose last Event is the oldest is dropped. The
 * next Event of a dropped series starts a new series.
 */
const MAX_SERIES = 1_000;
const DEADLINE_MS = 10_000;

export interface KnownSeries {
  /** Counts one more Event at `now` (RFC 3339), and returns its series. */
  readonly count: (object: KubeObject, note: EventNote, now: string) => Series;
}

/** Returns a collection without any series. `component` is the name of the component that reports the Events. */
export function knownSeries({
  component,
  random,
}: {
  readonly component: string;
  readonly random: () => number;
}): KnownSeries {
  const known = new Map<string, Series>();
  const begin = (object: KubeObject, note: EventNote, now: string): Series => {
    const suffix = note.once ?? Math.floor(random() * 2 ** 48).toString(16);
    const event = eventOf(object, note, { component, suffix, now });
    return { event, count: 0, created: false, attempts: 0 };
  };
  const remember = (key: string, series: Series): void => {
    known.delete(key);
    known.set(key, series);
    const [oldest] = known.keys();
    if (known.size > MAX_SERIES && oldest !== undefined) known.delete(oldest);
  };
  return {
    count(object, note, now) {
      const { kind, metadata } = object;
      const { namespace, name, uid } = metadata;
      const key = [kind, namespace, name, uid, note.type, note.reason, note.message].join('\0');
      const series = known.get(key) ?? begin(object, note, now);
      series.count++;
      series.event.lastTimestamp = now;
      remember(key, series);
      return series;
    },
  };
}

function eventOf(
  { apiVersion, kind, metadata: { name, namespace, uid } }: KubeObject,
  { type, reason, message }: EventNote,
  {
    component,
    suffix,
    now,
  }: { readonly component: string; readonly suffix: string; readonly now: string },
): Event {
  return {
    apiVersion: 'v1',
    kind: 'Event',
    // Events on cluster-scoped objects must be in the namespace `default`.
    metadata: { name: `${name.slice(0, 200)}.${suffix}`, namespace: namespace ?? 'default' },
    involvedObject: defined({ apiVersion, kind, name, namespace, uid }),
    type,
    reason,
    message: printable(message).slice(0, 1_024),
    firstTimestamp: now,
    source: { component },
    reportingComponent: component,
  };
}

/**
 * Creates the Event of a series on the server, or writes its new count. It rejects if the server
 * refuses or does not answer.
 */
export async function sendSeries(
  series: Series,
  client: KubeClient,
  abort: AbortSignal,
): Promise<void> {
  const { event, count } = series;
  const { name, namespace } = event.metadata;
  const options = { namespace, deadlineMs: DEADLINE_MS, abort };
  if (series.created) {
    const patch = { count, lastTimestamp: event.lastTimestamp };
    await client.patch(events, name, patch, { ...options, type: 'merge' });
  } else {
    await client.create(events, { ...event, count }, options);
    series.created = true;
  }
}
