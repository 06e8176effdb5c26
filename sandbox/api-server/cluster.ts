/** The state that all handlers use: the revisions, the served kinds, their collections, and the clock. */
import { type Clock, rfc3339 } from '../../src/util/clock.ts';
import { noSuchResource } from './failure.ts';
import { builtinKinds } from './kinds/builtin-kinds.ts';
import type { Kind } from './kinds/kind.ts';
import { Collection, type Revisions } from './store.ts';

/** A kind and its objects. */
export interface Resource {
  readonly kind: Kind;
  readonly collection: Collection;
}

/** The state of one server. It ends with the server, and no other server uses it. */
export class Cluster {
  readonly clock: Clock;
  readonly revisions: Revisions;
  readonly newUid: () => string;
  readonly #resources = new Map<string, Resource>();

  constructor(clock: Clock, revisions: Revisions, newUid: () => string) {
    this.clock = clock;
    this.revisions = revisions;
    this.newUid = newUid;
    for (const kind of builtinKinds) this.serve(kind);
  }

  /** Starts to serve a kind. If the kind is served already, changes its rules, also for existing objects. */
  serve(kind: Kind): Resource {
    const id = idOf(kind);
    const present = this.#resources.get(id)?.collection;
    present?.reread((object) => kind.read(object, []));
    const resource = { kind, collection: present ?? new Collection(this.revisions) };
    this.#resources.set(id, resource);
    return resource;
  }

  cancel(kind: Pick<Kind, 'group' | 'plural'>): void {
    this.#resources.delete(idOf(kind));
  }

  find(group: string, plural: string): Resource | undefined {
    return this.#resources.get(idOf({ group, plural }));
  }

  /** Returns a built-in resource. */
  resource(group: string, plural: string): Resource {
    const found = this.find(group, plural);
    if (!found) throw noSuchResource();
    return found;
  }

  resources(): Resource[] {
    return [...this.#resources.values()];
  }

  /** Runs `task` after all listeners have received the change that led to it, and before the next request. */
  defer(task: () => void): void {
    queueMicrotask(task);
  }

  /** Returns the current time in the form of `metav1.Time`. */
  timestamp(): string {
    return rfc3339(this.clock.now());
  }
}

const idOf = ({ group, plural }: Pick<Kind, 'group' | 'plural'>): string => `${plural}.${group}`;
