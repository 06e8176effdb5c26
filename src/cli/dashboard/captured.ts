/** Collects the output of a command, and the problems that ended it, for a page. */

import { missingRightIn } from '../../kube/missing-right.ts';
import { describeProblem } from '../../kube/status-error.ts';
import type { Output } from '../output.ts';
import type { ActionResult } from './state.ts';

/** Resolves with the output of `run`. If `run` rejects, the output is followed by sentences that say why. */
export async function captured(run: (output: Output) => Promise<unknown>): Promise<ActionResult> {
  const lines: string[] = [];
  const output = {
    isTerminal: false,
    hasColours: false,
    size: () => ({ columns: Number.POSITIVE_INFINITY, rows: Number.POSITIVE_INFINITY }),
    write: (text: string): void => void lines.push(...text.trimEnd().split('\n')),
  };
  try {
    await run(output);
    return { isDone: true, lines };
  } catch (error) {
    return { isDone: false, lines: [...lines, ...refusalFor(error)] };
  }
}

/** Returns one sentence for each problem. */
function refusalFor(error: unknown): string[] {
  const right = missingRight(error);
  if (right !== undefined) return [right];
  return describeProblem(error)
    .text.split('\n')
    .map((line) => line.trim());
}

/** Returns a sentence that names the missing right; undefined if an admission policy refused, which gives its own reason. */
function missingRight(error: unknown): string | undefined {
  const found = missingRightIn(error);
  if (found === undefined) return undefined;
  const { user, verb, resource, group, namespace } = found;
  const kind = group === '' ? resource : `${resource}.${group}`;
  const where = namespace === undefined ? '' : ` in the namespace ${namespace}`;
  return `Refused: the user ${user} has no right to ${verb} ${kind}${where}.`;
}
