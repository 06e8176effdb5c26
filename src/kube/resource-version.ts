/** Owns the order of resourceVersions, which the API server guarantees to be decimal numbers of any length. */

/** Negative where `a` is older than `b`; throws a SyntaxError where one of them is not a number. */
export function compareResourceVersions(a: string, b: string): number {
  const [left, right] = [BigInt(a), BigInt(b)];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
