/** Owns waiting for all that runs at once, so that nothing of it outlives whoever began it. */

/** Resolves or rejects as `Promise.all` does, but only once each of them has come to its end. */
export async function settleAll<T>(running: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(running);
  return await Promise.all(running);
}
