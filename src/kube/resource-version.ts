/** Negative when `a` is older than `b`. API servers guarantee decimal numbers of any length; throws a SyntaxError otherwise. */
export function compareResourceVersions(a: string, b: string): number {
  const [left, right] = [BigInt(a), BigInt(b)];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
