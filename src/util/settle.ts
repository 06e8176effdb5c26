/** As `Promise.all`, but settles only when every promise has: nothing outlives its caller. */
export async function settleAll<T>(running: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(running);
  return await Promise.all(running);
}
