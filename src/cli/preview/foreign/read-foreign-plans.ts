/**
 * Reads plans from the text of a viewer in a worker thread. The parser may need seconds and hundreds of MiB for a text that was made for
 * this purpose, and the main thread of a controller renews the Lease.
 */
import { Worker } from 'node:worker_threads';
import { onAbort } from '../../../util/waits.ts';
import { PLAN_KINDS, type PlanFiles, refuseFiles } from '../plan-files.ts';
import { readerProgram } from './reader-program.ts';
import type { ReaderAnswer, ReaderTask } from './reader-task.ts';

/** The limits of the worker thread. A plan that lists ten thousand nodes in 256 KiB needs less than half of the memory. */
const LIMITS = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };
const LONGEST_MS = 10_000;
/** The main thread reads an answer of this many characters within some milliseconds. */
const LONGEST_ANSWER = 1024 * 1024;

/** Rejects with REFIT_FILE if the text has a problem, or if the worker thread reaches one of its limits. */
export async function readForeignPlans(
  text: string,
  place: string,
  mostPlans: number,
  abort: AbortSignal,
): Promise<PlanFiles> {
  const task = { text, place, mostPlans, longestAnswer: LONGEST_ANSWER };
  const answer = JSON.parse(await askWorker(task, abort)) as ReaderAnswer;
  if ('problems' in answer) return refuseFiles(answer.problems);
  const plans = answer.plans.flatMap(({ group, plural, ...rest }) => {
    const kind = PLAN_KINDS.find(
      ({ resource }) => resource.group === group && resource.plural === plural,
    );
    return kind === undefined ? [] : [{ ...rest, kind }];
  });
  return { plans, policies: answer.policies };
}

async function askWorker(task: ReaderTask, abort: AbortSignal): Promise<string> {
  const { program, isText } = readerProgram();
  const worker = new Worker(program, {
    eval: isText,
    workerData: task,
    resourceLimits: LIMITS,
    env: {},
    execArgv: [],
    stdout: true,
    stderr: true,
  });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const refuse = (why: string): void => {
    try {
      refuseFiles([`${task.place}: ${why}`]);
    } catch (error) {
      reject(error instanceof Error ? error : new Error(why));
    }
  };
  worker.once('message', (answer: string) => resolve(answer));
  worker.once('error', ({ code }: NodeJS.ErrnoException) =>
    refuse(
      code === 'ERR_WORKER_OUT_OF_MEMORY'
        ? 'reading it needs too much memory; use `refit preview -f`'
        : 'it cannot be read; use `refit preview -f`, which says why',
    ),
  );
  worker.once('exit', () => refuse('its reader ended without an answer'));
  const stop = AbortSignal.any([abort, AbortSignal.timeout(LONGEST_MS)]);
  using listening = new DisposableStack();
  listening.use(
    onAbort(stop, () =>
      refuse(`reading it takes longer than ${LONGEST_MS / 1000} s; use \`refit preview -f\``),
    ),
  );
  try {
    return await promise;
  } finally {
    await worker.terminate();
  }
}
