/** Owns waiting for an AbortSignal. */

/** Resolves once the signal is aborted, at once where it already is. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
