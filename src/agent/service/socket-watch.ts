/** Wakes the agent when the status socket of a service that starts is made. */
import { existsSync, type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';

/**
 * Calls `listener` when the file of the socket comes, until the returned function is called. Undefined when it is there
 * already, or its directory cannot be watched: then the service must be asked.
 */
export function watchForSocket(socket: string, listener: () => void): (() => void) | undefined {
  const watcher = watcherOf(dirname(socket));
  watcher?.on('error', listener);
  watcher?.on('change', (_, name) => {
    if (name === basename(socket)) listener();
  });
  // After the watch began: no change is missed.
  if (watcher && !existsSync(socket)) return () => watcher.close();
  watcher?.close();
  return undefined;
}

function watcherOf(directory: string): FSWatcher | undefined {
  try {
    return watch(directory);
  } catch {
    return undefined;
  }
}
