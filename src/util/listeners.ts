/** Keeps functions that are called when something changes. */

export interface Listeners<Arguments extends readonly unknown[] = []> {
  /** Adds the listener. The returned function removes it. */
  add(listener: (...args: Arguments) => void): () => void;
  /** Calls all listeners, in the order in which they were added. */
  call(...args: Arguments): void;
}

export function createListeners<Arguments extends readonly unknown[] = []>(): Listeners<Arguments> {
  const listeners = new Set<(...args: Arguments) => void>();
  return {
    add(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    call(...args) {
      for (const listener of listeners) listener(...args);
    },
  };
}
