/** Counts and short lists in sentences for people. */

/** `1 node`, `2 nodes`. */
export function counted(count: number, noun: string): string {
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`;
}

/** `a, b and 3 more`. */
export function listed(names: readonly string[], most = 5): string {
  const shown = names.slice(0, most).join(', ');
  return names.length > most ? `${shown} and ${names.length - most} more` : shown;
}

/** `a is gone; b is gone; and 3 more`. */
export function listedSentences(sentences: readonly string[], most = 5): string {
  const rest = sentences.length - most;
  return [...sentences.slice(0, most), ...(rest > 0 ? [`and ${rest} more`] : [])].join('; ');
}
