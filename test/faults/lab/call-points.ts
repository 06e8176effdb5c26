/** The points where an API call can fail, and how: the n-th call of one verb for one resource. */
import type { Call } from '../../../src/kube/client.ts';

/**
 * crash before: the process dies with the call in its hand · crash after: the server does it, and the process dies · 504: the
 * server does it, and answers that it was too late · another number: it answers that, and does nothing · lost answer: the
 * server does it, and no answer comes · stale: what is read is as old as what was read there first, or comes late.
 */
export type Fault =
  | 'crash before'
  | 'crash after'
  | '409'
  | '410'
  | '429'
  | '500'
  | '504'
  | 'lost answer'
  | 'stale';

export const FAULTS: readonly Fault[] = [
  'crash before',
  'crash after',
  '409',
  '410',
  '429',
  '500',
  '504',
  'lost answer',
  'stale',
];

/** Actor, call and its number: the same in each run with the same course. */
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

/** What can go wrong at a call: only writes conflict, and only watches find their version gone. */
export function faultsAt({ verb }: Pick<Call, 'verb'>): readonly Fault[] {
  const isWrite = WRITES.includes(verb);
  return FAULTS.filter((fault) => {
    if (fault === '409' || fault === '504') return isWrite;
    if (fault === '410') return LISTS.includes(verb);
    if (fault === 'stale') return !isWrite;
    return true;
  });
}

/** Counts calls, remembers every place where there was one, and says what goes wrong there. */
export class Tape {
  readonly points: CallPoint[] = [];
  readonly #counts = new Map<string, number>();
  readonly #choose: (point: CallPoint) => Fault | undefined;

  /** `choose` is asked once at each point. */
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
