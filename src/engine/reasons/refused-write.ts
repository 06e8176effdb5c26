/** Says that the API server refuses a write for a target, and finds this sentence again in the record of a plan. */

/** Returns the sentence. `rest` says which write is refused and why, such as `to change its object: …`. */
export function refusedWrite(target: string, rest: string): string {
  return `${beginOf(target)}${rest}`;
}

/** Returns true if one of the recorded sentences, with semicolons between them, says this about the target. */
export function isRefusedIn(sentences: string, target: string): boolean {
  return `; ${sentences}`.includes(`; ${beginOf(target)}`);
}

function beginOf(target: string): string {
  return `${target}: the API server refuses `;
}
