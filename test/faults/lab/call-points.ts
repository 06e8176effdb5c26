/**
 * The points at which an API call can fail, and the ways in which it can fail. A point is the n-th call of one verb for
 * one resource.
 */
import type { Call } from '../../../src/kube/client.ts';

/**
 * The faults of an API call:
 *
 * - crash before the call: the process dies before it sends the call.
 * - crash after the call: the server does what was requested, and then the process dies.
 * - error 504: the server does what was requested, and answers with a timeout.
 * - another error: the server answers with this code and does nothing.
 * - lost answer: the server does what was requested, but the client gets no answer.
 * - old or late data: a read returns the result of the first read with the same path and query, and a watch is late.
 */
export type Fault =
  | 'crash before the call'
  | 'crash after the call'
  | 'error 409'
  | 'error 410'
  | 'error 429'
  | 'error 500'
  | 'error 504'
  | 'lost answer'
  | 'old or late data';

export const FAULTS: readonly Fault[] = [
  'crash before the call',
  'crash after the call',
  'error 409',
  'error 410',
  'error 429',
  'error 500',
  'error 504',
  'lost answer',
  'old or late data',
];

/**
 * A call, identified by the actor, the kind of call and its number. Runs in which the same things happen have the same
 * points.
 */
export interface CallPoint {
  readonly actor: string;
  readonly verb: string;
  readonly resource: string;
  /** From 1. */
  readonly nth: number;
}

export function nameOf({ actor, verb, resource, nth }: CallPoint): string {
  return `${actor}: ${verb} ${resource} #${nth}`;
}

const WRITES = ['create', 'update', 'patch', 'delete'];
const LISTS = ['list', 'watch'];

/**
 * Returns the faults that can happen at a call. Only writes can conflict, and only watches can find that their
 * resourceVersion has expired.
 */
export function faultsAt({ verb }: Pick<Call, 'verb'>): readonly Fault[] {
  const isWrite = WRITES.includes(verb);
  return FAULTS.filter((fault) => {
    if (fault === 'error 409' || fault === 'error 504') return isWrite;
    if (fault === 'error 410') return LISTS.includes(verb);
    if (fault === 'old or late data') return !isWrite;
    return true;
  });
}

/** Counts calls, records every point at which a call happened, and determines the fault at each point. */
export class Tape {
  readonly points: CallPoint[] = [];
  readonly #counts = new Map<string, number>();
  readonly #choose: (point: CallPoint) => Fault | undefined;

  /** `choose` is called once at each point. */
  constructor(choose: (point: CallPoint) => Fault | undefined = () => undefined) {
    this.#choose = choose;
  }

  next(actor: string, { verb, resource }: Pick<Call, 'verb' | 'resource'>): Fault | undefined {
    const key = `${actor} ${verb} ${resource}`;
    const nth = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, nth);
    const point = { actor, verb, resource, nth };
    this.points.push(point);
    return this.#choose(point);
  }
}
