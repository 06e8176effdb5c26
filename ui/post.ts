/** Sends the requests of a viewer to the server. */
import type { ActionResult } from '../src/cli/dashboard/state.ts';

/** Resolves with the result. If there is no result, it resolves with one sentence that says why. */
export async function post(path: string, type: string, body: string): Promise<ActionResult> {
  try {
    const answer = await fetch(path, {
      method: 'POST',
      headers: { 'content-type': type, 'x-refit-action': '1' },
      body,
    });
    if (answer.ok) return (await answer.json()) as ActionResult;
    return { isDone: false, lines: [await answer.text()] };
  } catch {
    return { isDone: false, lines: ['refit dashboard does not answer.'] };
  }
}
