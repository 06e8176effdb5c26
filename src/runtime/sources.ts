/** Owns which keys a change concerns: from an informer's events to entries of a controller's queue. */

import { keyOf } from '../kube/object-key.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Informer } from '../kube/watch/informer.ts';
import type { Priority } from './queue.ts';

export type Enqueue = (key: string, priority?: Priority) => void;

export interface EventSource {
  /** What must be synced before the controller starts. */
  readonly informer: Informer;
  /** Enqueues from now on, first for everything there is; the returned function ends it. */
  start(enqueue: Enqueue): () => void;
}

/** Whether a change matters; `previous` is absent for additions and deletions. */
export type Predicate<T extends KubeObject> = (object: T, previous?: T) => boolean;

export interface SourceOptions<T extends KubeObject> {
  readonly when?: Predicate<T>;
  readonly priority?: Priority;
}

/** The object's own key. */
export function fromObject<T extends KubeObject>(informer: Informer<T>, options?: SourceOptions<T>): EventSource {
  return fromMapping(informer, (object) => [keyOf(object)], options);
}

/**
 * Keys of the owners of `kind`, in the object's own namespace where it has one.
 * @public Part of what every controller may be built of.
 */
export function fromOwner<T extends KubeObject>(
  informer: Informer<T>,
  kind: string,
  options?: SourceOptions<T>,
): EventSource {
  const owners = ({ metadata }: T): string[] =>
    (metadata.ownerReferences ?? [])
      .filter((owner) => owner.kind === kind)
      .map(({ name }) => keyOf({ metadata: { ...metadata, name } }));
  return fromMapping(informer, owners, options);
}

/**
 * Keys of the objects in `target` that `index` finds under the changed object's key: those that refer to it.
 * @public Part of what every controller may be built of.
 */
export function fromIndex<T extends KubeObject>(
  informer: Informer<T>,
  target: Informer,
  index: string,
  options?: SourceOptions<T>,
): EventSource {
  return fromMapping(informer, (object) => target.byIndex(index, keyOf(object)).map(keyOf), options);
}

/** Keys by any function; of an update both states are asked, so that what no longer concerns a key still reaches it. */
export function fromMapping<T extends KubeObject>(
  informer: Informer<T>,
  keysOf: (object: T) => readonly string[],
  { when = () => true, priority }: SourceOptions<T> = {},
): EventSource {
  return {
    informer,
    start: (enqueue) => {
      const tell = (object: T, previous?: T): void => {
        if (!when(object, previous)) return;
        for (const key of new Set([...keysOf(object), ...(previous ? keysOf(previous) : [])])) enqueue(key, priority);
      };
      return informer.addHandler({ added: tell, updated: tell, deleted: (object) => tell(object) });
    },
  };
}

/**
 * The spec changed, an object came or went; writes to status and metadata alone don't count.
 * @public Part of what every controller may be built of.
 */
export function generationChanged<T extends KubeObject>(object: T, previous?: T): boolean {
  return previous === undefined || object.metadata.generation !== previous.metadata.generation;
}

/**
 * One of the named annotations changed, or the object came or went.
 * @public Part of what every controller may be built of.
 */
export function annotationsChanged<T extends KubeObject>(...names: readonly string[]): Predicate<T> {
  return ({ metadata }, previous) =>
    previous === undefined ||
    names.some((name) => metadata.annotations?.[name] !== previous.metadata.annotations?.[name]);
}
