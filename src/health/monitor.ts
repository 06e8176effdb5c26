/**
 * Asks the health checks of policies in the background, while plans under these policies are unfinished. Plans under one policy
 * share the answers. No decision ever waits for a check.
 */
import type { Clock } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { printable } from '../util/printable.ts';
import { aborted, semaphore } from '../util/waits.ts';
import type { CheckFinding, CheckResult, HealthCheck } from './checks.ts';

/** What one plan needs to know. */
export interface HealthScope {
  /** The name of the policy. */
  readonly policy: string;
  readonly checks: readonly HealthCheck[];
  /** The Nodes that the plan has upgraded, or is upgrading. */
  readonly nodes: readonly string[];
  /** Answers are needed that were asked for at this time or later, in milliseconds since the Unix epoch; 0 if any will do. */
  readonly after: number;
}

export interface HealthMonitor {
  /** Asks the checks from now on, until `forget` is called for the plan. */
  follow(plan: string, scope: HealthScope): void;
  forget(plan: string): void;
  /** Returns the last answers; empty if the plan is not followed. A check without an answer is missing. */
  resultsOf(plan: string): readonly CheckResult[];
  /** Calls the listener when a check takes another state, or when an answer came that a plan needed. The result ends that. */
  onChange(listener: () => void): () => void;
  /** Runs until `stop` aborts. Before and after that nothing is asked, and nothing is known. */
  run(stop: AbortSignal): Promise<void>;
}

/** Answers one check. `nodes` are those of all plans under the policy. A rejection makes the check unknown. */
export type AskCheck = (
  check: HealthCheck,
  nodes: ReadonlySet<string>,
  abort: AbortSignal,
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
  isAsking: boolean;
  /** Cancels the next round; undefined if none is planned. */
  cancel?: (() => void) | undefined;
}

export function createHealthMonitor(clock: Clock, ask: AskCheck): HealthMonitor {
  const scopes = new Map<string, HealthScope>();
  const entries = new Map<string, Entry>();
  const listeners = new Set<() => void>();
  const places = semaphore(AT_ONCE);
  let stopped: AbortSignal | undefined;

  const keyOf = (policy: string, check: HealthCheck): string => JSON.stringify([policy, check]);
  const scopesOf = (key: string): HealthScope[] =>
    [...scopes.values()].filter(({ policy, checks }) =>
      checks.some((check) => keyOf(policy, check) === key),
    );
  const neededAfter = (key: string): number =>
    Math.max(0, ...scopesOf(key).map(({ after }) => after));

  function plan(key: string, entry: Entry): void {
    if (stopped === undefined || stopped.aborted || entry.isAsking) return;
    entry.cancel?.();
    const lastAt = entry.result?.at;
    const isNeeded = lastAt === undefined || lastAt < neededAfter(key);
    const dueMs = isNeeded ? 0 : Math.max(0, lastAt + EVERY_MS - clock.now());
    entry.cancel = clock.schedule(Math.min(dueMs, EVERY_MS), () => void round(key, entry));
  }

  async function round(key: string, entry: Entry): Promise<void> {
    const stop = stopped;
    if (stop === undefined) return;
    entry.isAsking = true;
    entry.cancel = undefined;
    await places(async () => {
      const { result: before, check } = entry;
      const at = clock.now();
      const nodes = new Set(scopesOf(key).flatMap((scope) => scope.nodes));
      const found = await answered(check, nodes, stop);
      if (stop.aborted) return;
      const isSame = before?.state === found.state;
      entry.result = { ...found, name: check.name, at, since: isSame ? before.since : at };
      const needed = neededAfter(key);
      const isAwaited = before === undefined || (before.at < needed && at >= needed);
      if (!isSame || isAwaited) for (const listener of listeners) listener();
    });
    entry.isAsking = false;
    if (entries.get(key) === entry) plan(key, entry);
  }

  async function answered(
    check: HealthCheck,
    nodes: ReadonlySet<string>,
    stop: AbortSignal,
  ): Promise<CheckFinding> {
    const late = new AbortController();
    const { promise, resolve } = Promise.withResolvers<CheckFinding>();
    const noAnswer = `there was no answer within ${WITHIN_MS / 1000} s`;
    const cancel = clock.schedule(WITHIN_MS, () => {
      late.abort();
      resolve({ state: 'unknown', message: noAnswer });
    });
    // A check that ignores its signal must not hold up the others either.
    const asked = ask(check, nodes, AbortSignal.any([late.signal, stop])).catch(
      (error: unknown): CheckFinding => ({ state: 'unknown', message: messageOf(error) }),
    );
    const found = await Promise.race([asked, promise]).finally(cancel);
    return { ...found, message: printable(found.message).slice(0, LONGEST_MESSAGE) };
  }

  function dropUnused(): void {
    for (const [key, entry] of entries) {
      if (scopesOf(key).length > 0) continue;
      entry.cancel?.();
      entries.delete(key);
    }
  }

  return {
    follow(name, scope) {
      scopes.set(name, scope);
      dropUnused();
      for (const check of scope.checks) {
        const key = keyOf(scope.policy, check);
        plan(
          key,
          entries.getOrInsertComputed(key, () => ({ check, isAsking: false })),
        );
      }
    },
    forget(name) {
      if (scopes.delete(name)) dropUnused();
    },
    resultsOf(name) {
      const { policy = '', checks = [] } = scopes.get(name) ?? {};
      return checks.flatMap((check) => entries.get(keyOf(policy, check))?.result ?? []);
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async run(stop) {
      stopped = stop;
      for (const [key, entry] of entries) plan(key, entry);
      await aborted(stop);
      for (const { cancel } of entries.values()) cancel?.();
      scopes.clear();
      entries.clear();
      stopped = undefined;
    },
  };
}
