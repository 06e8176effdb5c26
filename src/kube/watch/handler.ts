/** Owns the contract of those who want to hear what changes in an informer's store. */
import type { KubeObject } from '../types.ts';

/**
 * Called in the order of the server's changes. Seen by uid, the calls are always: added, updated any number of times,
 * deleted; an object that is deleted and created anew under its name is reported so, never as an update.
 */
export interface Handler<T extends KubeObject> {
  added?(object: T): void;
  updated?(object: T, previous: T): void;
  /** The last state that is known, which may be older than the one that was deleted. */
  deleted?(object: T): void;
}
