/** The states of a model in which leaders and others change objects of Kubernetes, and their names for the explorer. */
import type { KubeObject, Node } from '../../src/kube/resources.ts';
import type { Drained } from './deeds.ts';
import type { Edge } from './explorer.ts';
import { contentOf } from './node-state.ts';
import { Numbering, StateTexts } from './numbering.ts';

/** What a model remembers of one node, and no leader can read. */
export interface NodePast {
  readonly name: string;
  /** True if the pods of the node are gone. */
  readonly isEmpty: boolean;
}

/** The number of the content of each object, by its key. An object that was deleted is missing. */
export type Contents = Readonly<Record<string, number>>;

interface ObjectState {
  readonly objects: Contents;
  readonly past: readonly NodePast[];
}

/** What a model remembers of one node afterwards. Members that are not given stay as they are. */
type PastChange<S extends Pick<ObjectState, 'past'>> = Partial<S['past'][number]> &
  Pick<NodePast, 'name'>;

/** A change of the cluster. Members that are not given stay as they are. */
export interface ObjectChange<S extends ObjectState> {
  readonly label: string;
  readonly fair: boolean;
  /** The objects that change; undefined for an object that is deleted. */
  readonly objects?: ReadonlyMap<string, KubeObject | undefined>;
  readonly state?: Partial<S>;
  readonly past?: PastChange<S>;
}

export class ObjectStates<S extends ObjectState> {
  readonly #contents = new Numbering<KubeObject>();
  readonly #texts = new StateTexts<S>();

  textOf(state: S): string {
    return this.#texts.textOf(state);
  }

  stateOf(text: string): S {
    return this.#texts.stateOf(text);
  }

  contentsOf(objects: ReadonlyMap<string, KubeObject>): Contents {
    return Object.fromEntries(
      [...objects].map(([key, object]) => [key, contentOf(this.#contents, object)]),
    );
  }

  /** Returns the object with this key. The caller knows its kind. */
  objectOf({ objects }: Pick<S, 'objects'>, key: string): KubeObject {
    return this.#contents.valueOf(objects[key] ?? -1);
  }

  /** Returns the objects in the order of their keys. */
  objectsIn(contents: Contents): Map<string, KubeObject> {
    const keys = Object.keys(contents).toSorted();
    return new Map(keys.map((key) => [key, this.objectOf({ objects: contents }, key)]));
  }

  /** Returns the state after a write of the object; undefined means that the object is deleted. */
  withObject(state: S, key: string, object: KubeObject | undefined): S {
    const { [key]: _, ...others } = state.objects;
    if (!object) return { ...state, objects: others };
    const objects = { ...others, [key]: contentOf(this.#contents, object) };
    const after = { ...state, objects };
    // New pods may come to a Node that is not cordoned.
    if (object.kind !== 'Node' || isClosed(object)) return after;
    return remembering(after, { name: object.metadata.name, isEmpty: false });
  }

  edge(state: S, { label, fair, objects, state: more, past }: ObjectChange<S>): Edge {
    let after = { ...state, ...more };
    for (const [key, object] of objects ?? []) after = this.withObject(after, key, object);
    return { label, fair, to: this.textOf(past ? remembering(after, past) : after) };
  }
}

export function isClosed(object: KubeObject): boolean {
  const node: Node = object;
  return node.spec?.unschedulable === true;
}

/** Returns the state in which the model remembers the change of one node. */
export function remembering<S extends Pick<ObjectState, 'past'>>(
  state: S,
  change: PastChange<S>,
): S {
  const past = state.past.map((each) =>
    each.name === change.name ? { ...each, ...change } : each,
  );
  return { ...state, past };
}

/** Returns what the model remembers of this node. */
export function pastOf<P extends NodePast>(
  { past }: { readonly past: readonly P[] },
  name: string,
): P {
  const found = past.find((each) => each.name === name);
  if (!found) throw new RangeError(`no node ${name}`);
  return found;
}

/** The end of a drain. */
interface DrainChange {
  readonly label: string;
  readonly fair: true;
  readonly state: { readonly drains: Drained };
  readonly past: NodePast;
}

/** Returns the ends of the drains that have begun. */
export function drainChanges({ drains }: { readonly drains: Drained }): DrainChange[] {
  return Object.entries(drains).flatMap(([name, drain]): DrainChange[] => {
    if (drain.kind === 'drained') return [];
    return [
      {
        label: `the drain of ${name} ends`,
        fair: true,
        state: { drains: { ...drains, [name]: { ...drain, kind: 'drained' } } },
        past: { name, isEmpty: true },
      },
    ];
  });
}
