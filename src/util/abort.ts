/** Resolves when `abort` aborts, at once when it already has. */
export async function aborted(abort: AbortSignal): Promise<void> {
  if (abort.aborted) return;
  await new Promise<void>((resolve) => abort.addEventListener('abort', () => resolve(), { once: true }));
}

/** Settles as `work` does, or rejects with the reason of `abort` when that comes first. */
export async function untilAborted<T>(work: Promise<T>, abort?: AbortSignal): Promise<T> {
  abort?.throwIfAborted();
  let onAbort = (): void => undefined;
  const ended = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(abort?.reason instanceof Error ? abort.reason : new Error('aborted'));
    abort?.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, ended]);
  } finally {
    abort?.removeEventListener('abort', onAbort);
  }
}
