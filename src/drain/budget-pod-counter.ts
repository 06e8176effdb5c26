/**
 * Counts the pods on each Node that PodDisruptionBudgets cover. It counts regularly in the background, as long as a
 * plan needs the numbers. It stores only the numbers, and no decision waits for an answer of the API server.
 */
import type { KubeClient } from '../kube/client.ts';
import { type BackgroundReader, createBackgroundReader } from '../util/background-reader.ts';
import type { Clock } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import type { Logger } from '../util/log.ts';
import { printable } from '../util/printable.ts';
import { untilAborted } from '../util/waits.ts';
import { within } from '../util/within.ts';
import { type BudgetPods, countBudgetPods } from './budget-pods.ts';

/** It calls its listeners only when the first attempt has ended. */
export type BudgetPodCounter = BackgroundReader<BudgetPods>;

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
  const { client, clock } = parts;
  return createBackgroundReader({
    name: 'budget pods',
    clock,
    everyMs: EVERY_MS,
    read: async (ended, before) =>
      joined(parts, before, await countInTime(client, clock, ended), ended),
    isNews: (before) => before === 'unasked',
  });
}

/** Returns what is known after an attempt. After a failed attempt the former numbers stay, and each new problem is logged once. */
function joined(
  { log }: CounterParts,
  known: BudgetPods | 'unasked',
  { byNode, problem }: BudgetPods,
  ended: AbortSignal,
): BudgetPods {
  if (problem === undefined) return { byNode };
  const before = known === 'unasked' ? {} : known;
  if (before.problem !== problem && !ended.aborted) log.warn(COUNT_FAILED, { problem });
  return { ...before, problem };
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
