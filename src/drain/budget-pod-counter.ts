/**
 * Counts the pods on each Node that PodDisruptionBudgets cover. It counts regularly in the background, as long as a
 * plan needs the numbers. It stores only the numbers, and no decision waits for an answer of the API server.
 */
import type { KubeClient } from '../kube/client.ts';
import { type Clock, sleep } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { createListeners } from '../util/listeners.ts';
import type { Logger } from '../util/log.ts';
import { printable } from '../util/printable.ts';
import { aborted, untilAborted } from '../util/waits.ts';
import { within } from '../util/within.ts';
import { type BudgetPods, countBudgetPods } from './budget-pods.ts';

export interface BudgetPodCounter {
  /** The name of this part of the process. */
  readonly name: string;
  /**
   * Records whether the plan needs the numbers of pods from now on. `plan` identifies the plan among the plans of all
   * dialects.
   */
  follow(plan: string, isNeeded: boolean): void;
  forget(plan: string): void;
  /** Returns the last numbers of pods; `unasked` until the first attempt to count has ended. */
  known(): BudgetPods | 'unasked';
  /** Calls the listener when the first attempt has ended. The returned function removes the listener. */
  onChange(listener: () => void): () => void;
  /** Runs until `stop` aborts. The numbers are known only during this time. */
  run(stop: AbortSignal): Promise<void>;
}

export interface CounterParts {
  readonly client: Pick<KubeClient, 'listAll'>;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
}

/** Milliseconds between the end of an attempt and the start of the next attempt. */
const EVERY_MS = 60_000;
/** The most milliseconds that one attempt to count may take. The lists of a large cluster have hundreds of pages. */
const WITHIN_MS = 60_000;

export function createBudgetPodCounter(parts: CounterParts): BudgetPodCounter {
  return new Counter(parts);
}

class Counter implements BudgetPodCounter {
  readonly name = 'budget pods';
  readonly #parts: CounterParts;
  readonly #listeners = createListeners();
  /** The plans that need the numbers. */
  readonly #plans = new Set<string>();
  #known: BudgetPods | 'unasked' = 'unasked';
  /** Aborts the running and the planned attempts to count; undefined if there are no such attempts. */
  #attempts: AbortController | undefined;
  #stop: AbortSignal | undefined;

  constructor(parts: CounterParts) {
    this.#parts = parts;
  }

  follow(plan: string, isNeeded: boolean): void {
    if (!isNeeded) {
      this.forget(plan);
      return;
    }
    this.#plans.add(plan);
    this.#begin();
  }

  forget(plan: string): void {
    this.#plans.delete(plan);
    if (this.#plans.size === 0) this.#end();
  }

  known(): BudgetPods | 'unasked' {
    return this.#known;
  }

  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  async run(stop: AbortSignal): Promise<void> {
    this.#stop = stop;
    if (this.#plans.size > 0) this.#begin();
    await aborted(stop);
    this.#stop = undefined;
    this.#plans.clear();
    this.#end();
  }

  #begin(): void {
    if (this.#stop === undefined || this.#attempts !== undefined) return;
    this.#attempts = new AbortController();
    void this.#keepCounting(this.#attempts.signal);
  }

  #end(): void {
    this.#attempts?.abort();
    this.#attempts = undefined;
    this.#known = 'unasked';
  }

  async #keepCounting(ended: AbortSignal): Promise<void> {
    const { client, clock } = this.#parts;
    while (!ended.aborted) {
      const found = await countInTime(client, clock, ended);
      if (ended.aborted) return;
      const isFirst = this.#known === 'unasked';
      this.#known = this.#joined(found);
      if (isFirst) this.#listeners.call();
      await sleep(clock, EVERY_MS, ended).catch(() => undefined);
    }
  }

  /** Returns what is known after an attempt. After a failed attempt the former numbers stay, and each new problem is logged once. */
  #joined({ byNode, problem }: BudgetPods): BudgetPods {
    if (problem === undefined) return { byNode };
    const before = this.#known === 'unasked' ? {} : this.#known;
    if (before.problem !== problem) this.#parts.log.warn(COUNT_FAILED, { problem });
    return { ...before, problem };
  }
}

const COUNT_FAILED =
  'cannot count the pods that PodDisruptionBudgets cover, so `drain.startWith` of UpgradePolicies uses former numbers, if there are any';

/**
 * Counts the pods once. Resolves with the numbers, or with the problem if the attempt fails or takes longer than WITHIN_MS. Never rejects.
 */
export async function countInTime(
  client: CounterParts['client'],
  clock: Clock,
  ended: AbortSignal,
): Promise<BudgetPods> {
  const late = new Error(`there was no complete answer within ${WITHIN_MS / 1000} s`);
  const counted = within(
    clock,
    { ms: WITHIN_MS, late, stop: ended },
    async (abort) =>
      // The attempt must end on time even if a request ignores its abort signal.
      await untilAborted(countBudgetPods(client, abort), abort),
  );
  return await counted.then(
    (byNode) => ({ byNode }),
    (error: unknown) => ({ problem: printable(messageOf(error)) }),
  );
}
