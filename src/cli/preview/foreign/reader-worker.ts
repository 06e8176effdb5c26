/**
 * Reads one text of a viewer in a worker thread, which has its own heap with a limit. It answers with JSON, so that the size of the answer
 * is known before the main thread reads it.
 */
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { RefitError } from '../../../util/errors.ts';
import { planFilesIn } from '../plan-files.ts';
import type { ReaderAnswer, ReaderTask } from './reader-task.ts';

/** The deepest nesting of an object. No field of a plan or policy is as deep as this. */
const DEEPEST = 64;
const MOST_PROBLEMS = 50;
const LONGEST_PROBLEM = 500;
/** The maximum number of documents in a text. */
const MOST_DOCUMENTS = 100;

function answerTo({ text, place, mostPlans, longestAnswer }: ReaderTask): string {
  const answer = JSON.stringify(read(text, place, mostPlans));
  if (answer.length <= longestAnswer) return answer;
  return refused(`${place}: its aliases repeat too much; write the values out`);
}

function read(text: string, place: string, mostPlans: number): ReaderAnswer {
  const starts = text.match(/^---/gm)?.length ?? 0;
  if (starts > MOST_DOCUMENTS)
    return { problems: [`${place}: has more than ${MOST_DOCUMENTS} documents`] };
  try {
    const { plans, policies } = planFilesIn([{ path: place, text, isFromFolder: false }], {
      mostPlans,
    });
    const objects = [...plans.map(({ object }) => object), ...policies];
    if (objects.some((each) => isDeeper(each, DEEPEST)))
      return { problems: [`${place}: it is nested too deeply`] };
    return {
      plans: plans.map((plan) => ({
        place: plan.place,
        plural: plan.kind.resource.plural,
        group: plan.kind.resource.group,
        object: plan.object,
      })),
      policies,
    };
  } catch (error) {
    if (!(error instanceof RefitError)) throw error;
    return { problems: problemsOf(error) };
  }
}

/** Returns the first problems of the error. The main thread adds the advice of the error again. */
function problemsOf({ problems }: RefitError): string[] {
  const shown = problems.slice(0, MOST_PROBLEMS).map((line) => line.slice(0, LONGEST_PROBLEM));
  const left = problems.length - shown.length;
  return left > 0 ? [...shown, `and ${left} more problems`] : shown;
}

/** Returns true if objects or lists are nested in the value more than `depth` times. */
function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth === 0 || Object.values(value).some((each) => isDeeper(each, depth - 1));
}

function refused(problem: string): string {
  return JSON.stringify({ problems: [problem] } satisfies ReaderAnswer);
}

const NOTHING_TO_TRANSFER: never[] = [];

if (!isMainThread) parentPort?.postMessage(answerTo(workerData as ReaderTask), NOTHING_TO_TRANSFER);
