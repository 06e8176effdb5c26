/**
 * Performs the health checks of policies in the background, while plans under these policies are unfinished. All plans
 * under one policy use the same results. No decision ever waits for a check.
 */
import type { Clock } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { createListeners } from '../util/listeners.ts';
import { onceForEachWith } from '../util/memo.ts';
import { printable } from '../util/printable.ts';
import { aborted, semaphore } from '../util/waits.ts';
import { within } from '../util/within.ts';
import type { CheckFinding, CheckResult, HealthCheck } from './checks.ts';

/** The checks and the Nodes of one plan, and how recent its results must be. */
export interface HealthScope {
  /** The name of the policy. */
  readonly policy: string;
  readonly checks: readonly HealthCheck[];
  /** The Nodes that the plan has upgraded, or is upgrading. */
  readonly nodes: readonly string[];
  /**
   * The plan needs a result of each check from this time or later, in milliseconds since the Unix epoch; 0 if every
   * result counts.
   */
  readonly after: number;
}

export interface HealthMonitor {
  /** Performs the checks from now on, until `forget` is called for the plan. */
  follow(plan: string, scope: HealthScope): void;
  forget(plan: string): void;
  /** Returns the last answers; empty if the plan is not followed. A check without an answer is missing. */
  resultsOf(plan: string): readonly CheckResult[];
  /**
   * Calls the listener when a check changes its state, or when an answer arrives that a plan needs. The returned function removes the
   * listener.
   */
  onChange(listener: () => void): () => void;
  /** Runs until `stop` aborts. Before and after the run, the monitor performs no checks and has no results. */
  run(stop: AbortSignal): Promise<void>;
}

/** The policy, the time of the round, and the earliest time from which a result is recent enough. */
export interface Need extends Pick<HealthScope, 'policy' | 'after'> {
  readonly now: number;
}

/**
 * Performs one check. `nodes` are the Nodes of all plans under the policy. If the promise rejects, the check is
 * unknown.
 */
export type AskCheck = (
  check: HealthCheck,
  nodes: ReadonlySet<string>,
  abort: AbortSignal,
  need: Need,
) => Promise<CheckFinding>;

/** Milliseconds between the starts of two rounds of a check. */
const EVERY_MS = 15_000;
/** Milliseconds that a round of a check may take. */
const WITHIN_MS = 10_000;
const AT_ONCE = 4;
/** The most characters of a message, because it may contain text from anywhere. */
const LONGEST_MESSAGE = 300;

/** One check of one policy. */
interface Entry {
  readonly check: HealthCheck;
  result?: CheckResult;
  /** The time at which the last round began. */
  askedAt?: number;
  isAsking: boolean;
  /** Cancels the next round; undefined if none is planned. */
  cancel?: (() => void) | undefined;
}

export function createHealthMonitor(clock: Clock, ask: AskCheck): HealthMonitor {
  return new Monitor(clock, ask);
}

class Monitor implements HealthMonitor {
  readonly #clock: Clock;
  readonly #ask: AskCheck;
  readonly #scopes = new Map<string, HealthScope>();
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = createListeners();
  readonly #inTurn = semaphore(AT_ONCE);
  /** The signal that ends the current run; undefined if the monitor does not run. */
  #stop: AbortSignal | undefined;

  constructor(clock: Clock, ask: AskCheck) {
    this.#clock = clock;
    this.#ask = ask;
  }

  follow(name: string, scope: HealthScope): void {
    this.#scopes.set(name, scope);
    this.#dropUnused();
    for (const check of scope.checks) {
      const key = keyOf(scope.policy, check);
      const entry = this.#entries.getOrInsertComputed(key, () => ({ check, isAsking: false }));
      this.#distrustFuture(entry);
      this.#planRound(key, entry);
    }
  }

  forget(name: string): void {
    if (this.#scopes.delete(name)) this.#dropUnused();
  }

  resultsOf(name: string): readonly CheckResult[] {
    const { policy = '', checks = [] } = this.#scopes.get(name) ?? {};
    return checks.flatMap((check) => {
      const entry = this.#entries.get(keyOf(policy, check));
      if (entry !== undefined) this.#distrustFuture(entry);
      return entry?.result ?? [];
    });
  }

  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  async run(stop: AbortSignal): Promise<void> {
    this.#stop = stop;
    for (const [key, entry] of this.#entries) this.#planRound(key, entry);
    await aborted(stop);
    this.#scopes.clear();
    this.#dropUnused();
    this.#stop = undefined;
  }

  #scopesOf(key: string): HealthScope[] {
    const has = ({ policy, checks }: HealthScope): boolean =>
      checks.some((check) => keyOf(policy, check) === key);
    return [...this.#scopes.values()].filter(has);
  }

  #neededAfter(key: string): number {
    return Math.max(0, ...this.#scopesOf(key).map(({ after }) => after));
  }

  /**
   * Makes an answer older than every moment for which a plan needs an answer, if its time lies in the future because the
   * wall clock was set back. Such an answer may be from before the upgrade of a node.
   */
  #distrustFuture(entry: Entry): void {
    const now = this.#clock.now();
    if (entry.result !== undefined && entry.result.at > now)
      entry.result = { ...entry.result, at: 0 };
    if (entry.askedAt !== undefined && entry.askedAt > now) entry.askedAt = 0;
  }

  #planRound(key: string, entry: Entry): void {
    if (this.#stop === undefined || this.#stop.aborted || entry.isAsking) return;
    entry.cancel?.();
    const lastAt = entry.askedAt;
    const isNeeded = lastAt === undefined || lastAt < this.#neededAfter(key);
    const dueMs = isNeeded ? 0 : Math.max(0, lastAt + EVERY_MS - this.#clock.now());
    // The wall clock may be set back, so the wait is bounded.
    const waitMs = Math.min(dueMs, EVERY_MS);
    entry.cancel = this.#clock.schedule(waitMs, () => void this.#round(key, entry));
  }

  async #round(key: string, entry: Entry): Promise<void> {
    const stop = this.#stop;
    if (stop === undefined) return;
    entry.isAsking = true;
    entry.cancel = undefined;
    await this.#inTurn(async () => await this.#askOnce(key, entry, stop));
    entry.isAsking = false;
    if (this.#entries.get(key) === entry) this.#planRound(key, entry);
  }

  async #askOnce(key: string, entry: Entry, stop: AbortSignal): Promise<void> {
    const { result: before, check } = entry;
    const at = this.#clock.now();
    const scopes = this.#scopesOf(key);
    const nodes = new Set(scopes.flatMap((scope) => scope.nodes));
    const need = { policy: scopes[0]?.policy ?? '', after: this.#neededAfter(key), now: at };
    const found = await this.#answer(check, nodes, need, stop);
    if (stop.aborted) return;
    entry.askedAt = at;
    const isSame = before?.state === found.state;
    const since = isSame ? before.since : at;
    const result = { ...found, name: check.name, at: found.at ?? at, since };
    entry.result = result;
    const needed = this.#neededAfter(key);
    const isAwaited = before === undefined || (before.at < needed && result.at >= needed);
    if (!isSame || isAwaited) this.#listeners.call();
  }

  async #answer(
    check: HealthCheck,
    nodes: ReadonlySet<string>,
    need: Need,
    stop: AbortSignal,
  ): Promise<CheckFinding> {
    const late = new Error(`there was no answer within ${WITHIN_MS / 1000} s`);
    const asked = within(
      this.#clock,
      { ms: WITHIN_MS, late, stop },
      async (abort) => await this.#ask(check, nodes, abort, need),
    );
    const found = await asked.catch(
      (error: unknown): CheckFinding => ({ state: 'unknown', message: messageOf(error) }),
    );
    return { ...found, message: printable(found.message).slice(0, LONGEST_MESSAGE) };
  }

  #dropUnused(): void {
    for (const [key, entry] of this.#entries) {
      if (this.#scopesOf(key).length > 0) continue;
      entry.cancel?.();
      this.#entries.delete(key);
    }
  }
}

function keyOf(policy: string, check: HealthCheck): string {
  return keyIn(check, policy);
}

/** The keys are computed once, because every turn of every plan asks for them. */
const keyIn = onceForEachWith((check: HealthCheck, policy) => JSON.stringify([policy, check]));
