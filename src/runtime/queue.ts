/** Owns the order of work: each key at most once in the queue and never twice at work, with delays, retries and priority. */
import { backoffDelay } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import { type BucketSize, TokenBucket } from '../util/token-bucket.ts';
import { Heap } from './heap.ts';

export interface QueueOptions {
  readonly clock: Clock;
  readonly random: () => number;
  /** Milliseconds before the first retry of a key, doubled with each further one up to `retryCapMs`. */
  readonly retryBaseMs?: number;
  readonly retryCapMs?: number;
  /** Retries of all keys together; one failing server must not be asked by a thousand keys at once. */
  readonly retries?: BucketSize;
}

/** Larger comes first; keys of the same priority come in the order in which they were added. */
export type Priority = number;

export interface WorkQueue {
  /** Marks the key as due. While it is at work it is remembered and comes again after `done`. */
  add(key: string, priority?: Priority): void;
  /** Adds the key in `ms`; of several such wishes the earliest counts. */
  addAfter(key: string, ms: number): void;
  /** Adds the key after its own backoff, and not before the retries of all keys together allow it. */
  retry(key: string): void;
  /** The key went well: its next retry starts from the base again. */
  forget(key: string): void;
  /** How often `retry` was called for the key since `forget`. */
  retries(key: string): number;
  /** The next key, which is at work until `done`; undefined once the queue is closed. */
  next(): Promise<string | undefined>;
  /** The key comes again no sooner than `restMs` from now, however often it is added until then. */
  done(key: string, restMs?: number): void;
  /** Keys that are due, also those that became so again while at work. */
  depth(): number;
  /** Drops what is queued, level-triggered work is found anew, and lets every waiting `next` end. */
  close(): void;
}

interface Due {
  readonly key: string;
  readonly priority: Priority;
  readonly turn: number;
}

interface Delayed {
  readonly key: string;
  readonly at: number;
}

const RETRY = { baseMs: 100, capMs: 120_000, bucket: { perSecond: 10, burst: 100 } };

export function createQueue(options: QueueOptions): WorkQueue {
  return new Queue(options);
}

class Queue implements WorkQueue {
  readonly #options: QueueOptions;
  readonly #clock: Clock;
  readonly #bucket: TokenBucket;
  readonly #due = new Heap<Due>((a, b) => a.priority > b.priority || (a.priority === b.priority && a.turn < b.turn));
  readonly #delayed = new Heap<Delayed>((a, b) => a.at < b.at);
  /** Keys that are due, with the priority that counts; entries of the heap that don't agree are out of date. */
  readonly #dirty = new Map<string, Due>();
  readonly #working = new Set<string>();
  readonly #dueAt = new Map<string, number>();
  /** Milliseconds of the clock until which a key is not wanted. */
  readonly #restingUntil = new Map<string, number>();
  readonly #failures = new Map<string, number>();
  readonly #waiting: ((key: string | undefined) => void)[] = [];
  #stopTimer: () => void = () => undefined;
  #turns = 0;
  #closed = false;

  constructor(options: QueueOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#bucket = new TokenBucket(options.clock, options.retries ?? RETRY.bucket);
  }

  add(key: string, priority: Priority = 0): void {
    if (this.#closed) return;
    const rest = this.#restOf(key);
    if (rest > 0) return this.addAfter(key, rest);
    const known = this.#dirty.get(key);
    if (known && known.priority >= priority) return;
    const entry = { key, priority, turn: known?.turn ?? this.#turns++ };
    this.#dirty.set(key, entry);
    if (this.#working.has(key)) return;
    this.#due.push(entry);
    this.#hand();
  }

  addAfter(key: string, ms: number): void {
    if (this.#closed) return;
    if (ms <= 0) return this.add(key);
    const at = this.#clock.monotonic() + ms;
    if (at >= (this.#dueAt.get(key) ?? Number.POSITIVE_INFINITY)) return;
    this.#dueAt.set(key, at);
    this.#delayed.push({ key, at });
    if (this.#delayed.peek()?.at === at) this.#arm();
  }

  retry(key: string): void {
    const failures = this.retries(key);
    this.#failures.set(key, failures + 1);
    const { retryBaseMs = RETRY.baseMs, retryCapMs = RETRY.capMs, random } = this.#options;
    const own = backoffDelay(failures, { base: retryBaseMs, cap: retryCapMs, random });
    this.addAfter(key, Math.max(own, this.#bucket.take()));
  }

  forget(key: string): void {
    this.#failures.delete(key);
  }

  retries(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  async next(): Promise<string | undefined> {
    if (this.#closed) return undefined;
    return this.#take() ?? (await new Promise((resolve) => this.#waiting.push(resolve)));
  }

  done(key: string, restMs = 0): void {
    this.#working.delete(key);
    const again = this.#dirty.get(key);
    if (restMs > 0) this.#restingUntil.set(key, this.#clock.monotonic() + restMs);
    if (!again || this.#closed) return;
    if (restMs > 0) {
      this.#dirty.delete(key);
      return this.addAfter(key, restMs);
    }
    this.#due.push(again);
    this.#hand();
  }

  depth(): number {
    return this.#dirty.size;
  }

  close(): void {
    this.#closed = true;
    this.#stopTimer();
    this.#due.clear();
    this.#delayed.clear();
    this.#dirty.clear();
    this.#dueAt.clear();
    this.#restingUntil.clear();
    for (const resolve of this.#waiting.splice(0)) resolve(undefined);
  }

  /** Milliseconds for which the key still rests. */
  #restOf(key: string): number {
    const rest = (this.#restingUntil.get(key) ?? 0) - this.#clock.monotonic();
    if (rest <= 0) this.#restingUntil.delete(key);
    return rest;
  }

  #take(): string | undefined {
    for (let entry = this.#due.pop(); entry; entry = this.#due.pop()) {
      if (this.#dirty.get(entry.key) !== entry) continue;
      this.#dirty.delete(entry.key);
      this.#working.add(entry.key);
      return entry.key;
    }
    return undefined;
  }

  #hand(): void {
    if (this.#waiting.length === 0) return;
    const key = this.#take();
    if (key !== undefined) this.#waiting.shift()?.(key);
  }

  /** One timer for the earliest delay. */
  #arm(): void {
    this.#stopTimer();
    const first = this.#delayed.peek();
    if (first) this.#stopTimer = this.#clock.schedule(first.at - this.#clock.monotonic(), () => this.#release());
  }

  #release(): void {
    for (let first = this.#delayed.peek(); first && first.at <= this.#clock.monotonic(); first = this.#delayed.peek()) {
      this.#delayed.pop();
      if (this.#dueAt.get(first.key) !== first.at) continue;
      this.#dueAt.delete(first.key);
      this.add(first.key);
    }
    this.#arm();
  }
}
