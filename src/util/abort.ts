/** Owns waiting for an AbortSignal. */

/** Resolves once the signal is aborted, at once where it already is. */
export async function aborted(abort: AbortSignal): Promise<void> {
  if (abort.aborted) return;
  await new Promise<void>((resolve) => abort.addEventListener('abort', () => resolve(), { once: true }));
}
