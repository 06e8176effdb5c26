/**
 * Keeps silences in Alertmanager in the background, while Nodes are in progress. Each silence ends by itself soon, unless it is renewed:
 * if no leader is there to renew it, its alerts are sent again. No decision ever waits for Alertmanager.
 */
import type { Clock } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { createListeners } from '../util/listeners.ts';
import { printable } from '../util/printable.ts';
import { aborted } from '../util/waits.ts';
import { within } from '../util/within.ts';
import type { Alertmanager } from './alertmanager.ts';
import {
  type Made,
  nextLookMs,
  type SilenceRule,
  serverOf,
  type Wanted,
  wantedFor,
} from './silence.ts';

type SilenceServer = Pick<Alertmanager, 'keep' | 'end'>;

/** The rules and the Nodes for which one plan needs silences. */
export interface SilenceScope {
  /** The name of the policy. */
  readonly policy: string;
  readonly rules: readonly SilenceRule[];
  /** The UID of the plan. */
  readonly uid: string;
  /** True if the plan rolls an earlier run back. */
  readonly rollsBack?: boolean;
  /** The Nodes in progress. */
  readonly nodes: readonly string[];
}

/** The state of the silences of a plan. */
export interface SilenceState {
  readonly isGood: boolean;
  readonly message: string;
}

/** The silence that one rule requires for one Node in progress. */
export interface NodeSilence {
  /** The name of the Node. */
  readonly node: string;
  /** The name of the rule. */
  readonly silence: string;
  /** The host and port of Alertmanager. */
  readonly server: string;
  /** Milliseconds from a renewal to the end of the silence. */
  readonly lastsMs: number;
  /** The silence in Alertmanager; undefined if there is none, or if its id is unknown. */
  readonly made: Pick<Made, 'id' | 'startsAt'> | undefined;
  /** The reason why the last attempt failed; undefined before the first attempt, and empty if the attempt succeeded. */
  readonly problem: string | undefined;
}

/** Receives the numbers of silences and of failed requests, for the metrics. */
export interface SilenceMeasures {
  /** Replaces the number of silences that the leader has on this server. */
  silenced(server: string, count: number): void;
  /** Counts a failed request to this server. */
  silenceFailed(server: string): void;
  /** Removes the numbers of silences, because only the leader knows them. */
  forgetSilences(): void;
}

export interface SilenceKeeper {
  /** Keeps silences for these Nodes of the plan from now on, and ends the plan's silences for all other Nodes. */
  follow(plan: string, scope: SilenceScope): void;
  /** Ends the silences of the plan. */
  forget(plan: string): void;
  /** Returns whether the last attempts succeeded; undefined if no attempt was necessary yet. */
  stateOf(plan: string): SilenceState | undefined;
  /** Returns the silences that the plan needs now, sorted by Node. */
  silencesOf(plan: string): readonly NodeSilence[];
  /**
   * Calls the listener when the state or the silences of a plan change, but not when a silence is renewed. The returned function removes
   * the listener.
   */
  onChange(listener: () => void): () => void;
  /**
   * Runs until `stop` aborts. It does not end the silences at that time, because the next leader continues to renew
   * them.
   */
  run(stop: AbortSignal): Promise<void>;
}

/** Milliseconds that one attempt to make, renew or end a silence may take. */
const WITHIN_MS = 10_000;
/** Milliseconds from a round with failures to the next round. */
const AGAIN_MS = 15_000;
/** The number of failures in a row after which a round ends, because the server seems to be unavailable. */
const ENOUGH_FAILURES = 3;
/** The most attempts to end a silence. A silence that cannot be ended expires at its end time. */
const ATTEMPTS_TO_END = 4;
/** The maximum number of characters of a message. There is a limit because a message may contain text from anywhere. */
const LONGEST_MESSAGE = 300;

/** The silence that one rule requires for one Node while one plan upgrades this Node or rolls it back. */
interface Entry {
  readonly plan: string;
  readonly policy: string;
  /**
   * The wanted silence. The duration and the Secret in it may change. The fields by which the silence is found never
   * change.
   */
  wanted: Wanted;
  /** The monotonic time at which the silence must be checked again. */
  dueAt: number;
  /** False once the Node is not in progress any more. */
  isNeeded: boolean;
  /** True once a request may have made the silence. */
  mayExist: boolean;
  /** The number of failed attempts to end the silence. */
  failedEnds: number;
  /** The problem of the last attempt; undefined before the first attempt, and empty if it succeeded. */
  problem?: string;
  /** The silence in Alertmanager, until it has ended. */
  made?: Made | undefined;
}

export function createSilenceKeeper(
  clock: Clock,
  server: SilenceServer,
  metrics: SilenceMeasures,
): SilenceKeeper {
  return new Keeper(clock, server, metrics);
}

class Keeper implements SilenceKeeper {
  readonly #clock: Clock;
  readonly #server: SilenceServer;
  readonly #listeners = createListeners();
  /**
   * The servers by their addresses. Each server has its own queue, so a server that does not answer delays no other
   * server.
   */
  readonly #lanes = new Map<string, Lane>();
  readonly #states = new Map<string, SilenceState>();
  readonly #metrics: SilenceMeasures;
  /** The silences of each plan, as JSON, after the last call of `follow` or the last attempt. */
  readonly #seen = new Map<string, string>();
  #stop: AbortSignal | undefined;

  constructor(clock: Clock, server: SilenceServer, metrics: SilenceMeasures) {
    this.#clock = clock;
    this.#server = server;
    this.#metrics = metrics;
  }

  follow(plan: string, { policy, rules, nodes, ...of }: SilenceScope): void {
    const needed = new Map<string, Map<string, Entry>>();
    for (const rule of rules)
      for (const node of nodes) {
        const wanted = wantedFor(rule, { plan, ...of }, node);
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
    // The caller of `follow` shows the new silences itself, so no listener is called.
    this.#seen.set(plan, JSON.stringify(this.silencesOf(plan)));
    this.#measure();
  }

  forget(plan: string): void {
    for (const lane of this.#lanes.values()) lane.need(plan, new Map());
    this.#states.delete(plan);
    this.#seen.delete(plan);
    this.#measure();
  }

  silencesOf(plan: string): readonly NodeSilence[] {
    return this.#entries()
      .filter((entry) => entry.plan === plan && entry.isNeeded)
      .map(silenceOf)
      .toSorted((a, b) => titleOf(a).localeCompare(titleOf(b)));
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
    this.#measure();
    await aborted(stop);
    for (const lane of this.#lanes.values()) lane.cancel();
    this.#lanes.clear();
    this.#states.clear();
    this.#seen.clear();
    this.#metrics.forgetSilences();
    this.#stop = undefined;
  }

  #laneOf(url: string): Lane {
    return this.#lanes.getOrInsertComputed(url, () => {
      const lane = new Lane(this.#clock, this.#server, (entry, problem) => {
        this.#looked(entry, problem);
      });
      if (this.#stop !== undefined) lane.begin(this.#stop);
      return lane;
    });
  }

  #entries(): Entry[] {
    return [...this.#lanes.values()].flatMap((lane) => lane.entries());
  }

  #looked({ plan, wanted, isNeeded }: Entry, problem: string): void {
    if (problem !== '') this.#metrics.silenceFailed(serverOf(wanted.rule));
    this.#measure();
    if (!isNeeded) return;
    const hasChanged = this.#judge(plan);
    const silences = JSON.stringify(this.silencesOf(plan));
    const isSeen = this.#seen.get(plan) === silences;
    this.#seen.set(plan, silences);
    if (hasChanged || !isSeen) this.#listeners.call();
  }

  /** Measures the silences of each server. Two addresses may have the same host. */
  #measure(): void {
    if (this.#stop === undefined) return;
    const counts = new Map<string, number>();
    for (const [url, lane] of this.#lanes) {
      const server = serverOf({ url });
      const made = lane.entries().filter(({ made }) => made !== undefined);
      counts.set(server, (counts.get(server) ?? 0) + made.length);
    }
    for (const [server, count] of counts) this.#metrics.silenced(server, count);
  }

  /**
   * Finds out whether the silences of the plan are kept. The last state does not change until there was an attempt for
   * one of these silences. Returns true if the state has changed.
   */
  #judge(plan: string): boolean {
    const tried = this.#entries().filter(
      (entry) => entry.plan === plan && entry.isNeeded && entry.problem !== undefined,
    );
    if (tried.length === 0) return false;
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
    return before?.isGood !== state.isGood || before.message !== state.message;
  }
}

/** One server. Its silences are handled one after the other, so that the server gets at most one request at a time. */
class Lane {
  readonly #clock: Clock;
  readonly #server: SilenceServer;
  readonly #onLook: (entry: Entry, problem: string) => void;
  readonly #entries = new Map<string, Entry>();
  #stop: AbortSignal | undefined;
  #cancel: (() => void) | undefined;
  #isAtWork = false;

  /** `onLook` is called after each attempt. The problem is empty if the attempt succeeded. */
  constructor(
    clock: Clock,
    server: SilenceServer,
    onLook: (entry: Entry, problem: string) => void,
  ) {
    this.#clock = clock;
    this.#server = server;
    this.#onLook = onLook;
  }

  begin(stop: AbortSignal): void {
    this.#stop = stop;
    this.#plan();
  }

  cancel(): void {
    this.#cancel?.();
  }

  entries(): Entry[] {
    return [...this.#entries.values()];
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
    // The loop also visits silences that are moved to the end of the queue while it runs, but these silences are not
    // due.
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

  /** Makes, renews or ends one silence. Resolves with true if the server did so. */
  async #look(key: string, entry: Entry, stop: AbortSignal): Promise<boolean> {
    const { wanted, isNeeded } = entry;
    entry.mayExist = true;
    const problem = await this.#ask(entry, stop);
    if (stop.aborted) return true;
    if (Date.parse(entry.made?.endsAt ?? '') <= this.#clock.now()) entry.made = undefined;
    const isCurrent = this.#entries.get(key) === entry;
    if (isNeeded) {
      entry.problem = problem;
      // If the Node is no longer in progress, its silence stays due, so that the next round ends it at once.
      if (entry.isNeeded)
        entry.dueAt =
          this.#clock.monotonic() + (problem === '' ? nextLookMs(wanted.rule) : AGAIN_MS);
    } else {
      entry.failedEnds += problem === '' ? 0 : 1;
      entry.dueAt = this.#clock.monotonic() + AGAIN_MS;
      const isOver = problem === '' || entry.failedEnds >= ATTEMPTS_TO_END;
      if (isCurrent && isOver) this.#entries.delete(key);
    }
    this.#onLook(entry, problem);
    // A silence that failed goes to the end of the queue, so that it delays no other silence.
    if (problem !== '' && this.#entries.get(key) === entry) {
      this.#entries.delete(key);
      this.#entries.set(key, entry);
    }
    return problem === '';
  }

  /** Resolves with the problem; it is empty if there is none. */
  async #ask(entry: Entry, stop: AbortSignal): Promise<string> {
    const { wanted, isNeeded } = entry;
    const late = new Error(`there was no answer within ${WITHIN_MS / 1000} s`);
    const told = within(this.#clock, { ms: WITHIN_MS, late, stop }, async (abort) => {
      const asked = isNeeded ? this.#server.keep(wanted, abort) : this.#server.end(wanted, abort);
      // An answer after the time limit counts, too, because the silence exists then.
      entry.made = (await asked) ?? undefined;
      return '';
    });
    const problem = await told.catch((error: unknown) => messageOf(error));
    return printable(problem).slice(0, LONGEST_MESSAGE);
  }
}

function silenceOf({ wanted: { node, rule }, made, problem }: Entry): NodeSilence {
  const { name: silence, lastsMs } = rule;
  const shown = made && { id: made.id, startsAt: made.startsAt };
  return { node, silence, server: serverOf(rule), lastsMs, made: shown, problem };
}

function titleOf({ node, silence, server }: NodeSilence): string {
  return [node, silence, server].join(' ');
}

function keyOf({ rule, matchers, comment }: Wanted): string {
  return JSON.stringify([comment, rule.url, matchers]);
}
