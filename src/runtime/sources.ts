/** Which keys a change concerns: from an informer's events to a controller's queue. */
import { keyOf } from '../kube/object-key.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Informer } from '../kube/watch/informer.ts';

export type Enqueue = (key: string) => void;

export interface EventSource {
  /** Must be synced before the controller starts. */
  readonly informer: Informer;
  /** Enqueues every object there is, then every change; the returned function ends it. */
  start(enqueue: Enqueue): () => void;
}

/** Filters changes; `previous` is absent for additions and deletions. */
export type Predicate<T extends KubeObject> = (object: T, previous?: T) => boolean;

/** Enqueues the object's own key. */
export function fromObject<T extends KubeObject>(informer: Informer<T>, when?: Predicate<T>): EventSource {
  return fromMapping(informer, (object) => [keyOf(object)], when);
}

/** Enqueues keys by any function. An update maps both states, so that keys which it no longer concerns hear of it too. */
export function fromMapping<T extends KubeObject>(
  informer: Informer<T>,
  keysOf: (object: T) => readonly string[],
  when: Predicate<T> = () => true,
): EventSource {
  return {
    informer,
    start: (enqueue) => {
      const onChange = (object: T, previous?: T): void => {
        if (!when(object, previous)) return;
        for (const key of new Set([...keysOf(object), ...(previous ? keysOf(previous) : [])])) enqueue(key);
      };
      return informer.addHandler({ added: onChange, updated: onChange, deleted: (object) => onChange(object) });
    },
  };
}

/** The spec changed, or the object came or went. Writes to status and metadata do not count. */
export function generationChanged<T extends KubeObject>(object: T, previous?: T): boolean {
  return previous === undefined || object.metadata.generation !== previous.metadata.generation;
}
