/**
 * Keeps silences in Alertmanager in the background, while Nodes are in progress. Each silence ends by itself soon, unless it is renewed:
 * if no leader is there to renew it, its alerts are sent again. No decision ever waits for Alertmanager.
 */
import type { Clock } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { createListeners } from '../util/listeners.ts';
import { printable } from '../util/printable.ts';
import { aborted } from '../util/waits.ts';
import type { Alertmanager } from './alertmanager.ts';
import { nextLookMs, type SilenceRule, type Wanted, wantedFor } from './silence.ts';

/** What one plan needs. */
export interface SilenceScope {
  /** The name of the policy. */
  readonly policy: string;
  readonly rules: readonly SilenceRule[];
  /** The UID of the plan. */
  readonly uid: string;
  /** The Nodes in progress. */
  readonly nodes: readonly string[];
}

/** The state of the silences of a plan. */
export interface SilenceState {
  readonly isGood: boolean;
  readonly message: string;
}

export interface SilenceKeeper {
  /** Silences these Nodes, and no others, for the plan from now on. */
  follow(plan: string, scope: SilenceScope): void;
  /** Ends the silences of the plan. */
  forget(plan: string): void;
  /** Returns whether the last attempts succeeded; undefined if no attempt was necessary yet. */
  stateOf(plan: string): SilenceState | undefined;
  /** Calls the listener when the state of a plan changes. The returned function removes the listener. */
  onChange(listener: () => void): () => void;
  /** Runs until `stop` aborts. It ends no silence then, because the next leader takes them over. */
  run(stop: AbortSignal): Promise<void>;
}

/** Milliseconds that one silence may take. */
const WITHIN_MS = 10_000;
/** Milliseconds until the next round after one with failures. */
const AGAIN_MS = 15_000;
/** The failures in a row after which a round ends, because the server seems to be gone. */
const ENOUGH_FAILURES = 3;
/** How often ending a silence is tried. It ends by itself, too. */
const ATTEMPTS_TO_END = 4;
/** The most characters of a message, because it may contain text from anywhere. */
const LONGEST_MESSAGE = 300;

/** The silence of one rule for one Node of one plan. */
interface Entry {
  readonly plan: string;
  readonly policy: string;
  /** Its duration and its Secret may change, but not the fields by which the silence is found. */
  wanted: Wanted;
  /** The monotonic time at which the silence must be looked at again. */
  dueAt: number;
  /** False once the Node is not in progress any more. */
  isNeeded: boolean;
  /** True once a request may have made the silence. */
  mayExist: boolean;
  /** How many attempts to end it have failed. */
  failedEnds: number;
  /** The problem of the last attempt; undefined before the first attempt, and empty if it succeeded. */
  problem?: string;
}

export function createSilenceKeeper(clock: Clock, server: Alertmanager): SilenceKeeper {
  return new Keeper(clock, server);
}

class Keeper implements SilenceKeeper {
  readonly #clock: Clock;
  readonly #server: Alertmanager;
  readonly #listeners = createListeners();
  /** The servers by their addresses. They are separate, so a server that does not answer delays no other server. */
  readonly #lanes = new Map<string, Lane>();
  readonly #states = new Map<string, SilenceState>();
  #stop: AbortSignal | undefined;

  constructor(clock: Clock, server: Alertmanager) {
    this.#clock = clock;
    this.#server = server;
  }

  follow(plan: string, { policy, rules, uid, nodes }: SilenceScope): void {
    const needed = new Map<string, Map<string, Entry>>();
    for (const rule of rules)
      for (const node of nodes) {
        const wanted = wantedFor(rule, plan, uid, node);
        const entry: Entry = {
          plan,
          policy,
          wanted,
          dueAt: this.#clock.monotonic(),
          isNeeded: true,
          mayExist: false,
          failedEnds: 0,
        };
        needed.getOrInsertComputed(rule.url, () => new Map()).set(keyOf(wanted), entry);
      }
    for (const url of needed.keys()) this.#laneOf(url);
    for (const [url, lane] of this.#lanes) lane.need(plan, needed.get(url) ?? new Map());
    if (rules.length === 0) this.#states.delete(plan);
  }

  forget(plan: string): void {
    for (const lane of this.#lanes.values()) lane.need(plan, new Map());
    this.#states.delete(plan);
  }

  stateOf(plan: string): SilenceState | undefined {
    return this.#states.get(plan);
  }

  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  async run(stop: AbortSignal): Promise<void> {
    this.#stop = stop;
    for (const lane of this.#lanes.values()) lane.begin(stop);
    await aborted(stop);
    for (const lane of this.#lanes.values()) lane.cancel();
    this.#lanes.clear();
    this.#states.clear();
    this.#stop = undefined;
  }

  #laneOf(url: string): Lane {
    return this.#lanes.getOrInsertComputed(url, () => {
      const lane = new Lane(this.#clock, this.#server, (plan) => this.#judge(plan));
      if (this.#stop !== undefined) lane.begin(this.#stop);
      return lane;
    });
  }

  /** Finds out whether the silences of the plan are kept. Between two Nodes, the last state holds. */
  #judge(plan: string): void {
    const tried = [...this.#lanes.values()]
      .flatMap((lane) => lane.entriesOf(plan))
      .filter(({ problem }) => problem !== undefined);
    if (tried.length === 0) return;
    const bad = tried.find(({ problem }) => problem !== '');
    const state: SilenceState =
      bad === undefined
        ? { isGood: true, message: 'alerts about nodes in progress are silenced' }
        : {
            isGood: false,
            message: `silence ${bad.wanted.rule.name} of UpgradePolicy ${bad.policy}: ${bad.problem}`,
          };
    const before = this.#states.get(plan);
    this.#states.set(plan, state);
    if (before?.isGood !== state.isGood || before.message !== state.message) this.#listeners.call();
  }
}

/** One server. Its silences are handled one after the other, so that the server gets at most one request at a time. */
class Lane {
  readonly #clock: Clock;
  readonly #server: Alertmanager;
  readonly #judge: (plan: string) => void;
  readonly #entries = new Map<string, Entry>();
  #stop: AbortSignal | undefined;
  #cancel: (() => void) | undefined;
  #isAtWork = false;

  constructor(clock: Clock, server: Alertmanager, judge: (plan: string) => void) {
    this.#clock = clock;
    this.#server = server;
    this.#judge = judge;
  }

  begin(stop: AbortSignal): void {
    this.#stop = stop;
    this.#plan();
  }

  cancel(): void {
    this.#cancel?.();
  }

  entriesOf(plan: string): Entry[] {
    return [...this.#entries.values()].filter((entry) => entry.plan === plan && entry.isNeeded);
  }

  need(plan: string, needed: ReadonlyMap<string, Entry>): void {
    let hasChanged = false;
    for (const [key, entry] of this.#entries) {
      if (entry.plan !== plan || !entry.isNeeded || needed.has(key)) continue;
      entry.isNeeded = false;
      entry.dueAt = this.#clock.monotonic();
      if (!entry.mayExist) this.#entries.delete(key);
      hasChanged = true;
    }
    for (const [key, entry] of needed) {
      const known = this.#entries.get(key);
      if (known?.isNeeded === true) {
        known.wanted = entry.wanted;
        continue;
      }
      this.#entries.set(key, { ...entry, mayExist: known?.mayExist ?? false });
      hasChanged = true;
    }
    if (hasChanged) this.#plan();
  }

  /** Schedules the next round for the time at which the first silence is due, but not before `leastMs`. */
  #plan(leastMs = 0): void {
    if (this.#stop === undefined || this.#stop.aborted || this.#isAtWork) return;
    this.#cancel?.();
    this.#cancel = undefined;
    if (this.#entries.size === 0) return;
    const first = Math.min(...[...this.#entries.values()].map(({ dueAt }) => dueAt));
    const waitMs = Math.max(leastMs, first - this.#clock.monotonic());
    this.#cancel = this.#clock.schedule(waitMs, () => void this.#round());
  }

  async #round(): Promise<void> {
    const stop = this.#stop;
    if (stop === undefined || stop.aborted) return;
    this.#isAtWork = true;
    let failures = 0;
    // The loop also visits silences that are put at the end of the queue meanwhile, but these are not due.
    for (const [key, entry] of this.#entries) {
      if (stop.aborted || failures >= ENOUGH_FAILURES) break;
      const isDue = entry.dueAt <= this.#clock.monotonic();
      if (!isDue || this.#entries.get(key) !== entry) continue;
      const isDone = await this.#look(key, entry, stop);
      failures = isDone ? 0 : failures + 1;
    }
    this.#isAtWork = false;
    this.#plan(failures > 0 ? AGAIN_MS : 0);
  }

  /** Resolves with whether the server did what was asked. */
  async #look(key: string, entry: Entry, stop: AbortSignal): Promise<boolean> {
    const { wanted, isNeeded } = entry;
    entry.mayExist = true;
    const problem = await this.#ask(wanted, isNeeded, stop);
    if (stop.aborted) return true;
    const isCurrent = this.#entries.get(key) === entry;
    if (isNeeded) {
      entry.problem = problem;
      // A Node that has ended meanwhile is due at once.
      if (entry.isNeeded)
        entry.dueAt =
          this.#clock.monotonic() + (problem === '' ? nextLookMs(wanted.rule) : AGAIN_MS);
      this.#judge(entry.plan);
    } else {
      entry.failedEnds += problem === '' ? 0 : 1;
      entry.dueAt = this.#clock.monotonic() + AGAIN_MS;
      const isOver = problem === '' || entry.failedEnds >= ATTEMPTS_TO_END;
      if (isCurrent && isOver) this.#entries.delete(key);
    }
    // A silence that failed goes to the end of the queue, so that it delays no other silence.
    if (problem !== '' && this.#entries.get(key) === entry) {
      this.#entries.delete(key);
      this.#entries.set(key, entry);
    }
    return problem === '';
  }

  /** Resolves with the problem; it is empty if there is none. */
  async #ask(wanted: Wanted, isNeeded: boolean, stop: AbortSignal): Promise<string> {
    const late = new AbortController();
    const { promise, resolve } = Promise.withResolvers<string>();
    const cancel = this.#clock.schedule(WITHIN_MS, () => {
      resolve(`there was no answer within ${WITHIN_MS / 1000} s`);
      late.abort();
    });
    const abort = AbortSignal.any([late.signal, stop]);
    const asked = isNeeded ? this.#server.keep(wanted, abort) : this.#server.end(wanted, abort);
    const told = asked.then(
      () => '',
      (error: unknown) => messageOf(error),
    );
    // A request that ignores its abort signal must not delay the others either.
    const problem = await Promise.race([told, promise]).finally(cancel);
    return printable(problem).slice(0, LONGEST_MESSAGE);
  }
}

function keyOf({ rule, matchers, comment }: Wanted): string {
  return JSON.stringify([comment, rule.url, matchers]);
}
