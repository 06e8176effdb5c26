/** Owns how pods are named to people: a node can hold a hundred of one budget; a status line cannot. */

/** Pods that are told by name. */
const NAMED = 5;

/** Names as `namespace/name`. */
export function nameSome(names: readonly string[]): string {
  const [shown, rest] = [names.toSorted().slice(0, NAMED), names.length - NAMED];
  return shown.join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}
