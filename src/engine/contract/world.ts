/** What a dialect reads: the watched objects, which kinds are watched, and the API servers that they show. */
import type { Selection } from '../../kube/client.ts';
import type { KubeObject, Resource } from '../../kube/resources.ts';

/** The objects that a decision may read, in the state that the watches show. Only watched kinds can be read. */
export interface World {
  /** Returns all objects of a watched kind; empty if there are none, or if the kind is not readable. */
  list<T extends KubeObject>(resource: Resource<T>): readonly T[];
  /** Returns one object of a watched kind; undefined if the watch does not show it. */
  get<T extends KubeObject>(resource: Resource<T>, name: string, namespace?: string): T | undefined;
  /**
   * Returns the names of objects that this process has written and whose new version the watch does not show yet. In
   * this case the watch may also lack earlier writes of other processes. Read-only commands do not have this member,
   * because they write nothing.
   */
  outdated?(resource: Resource): ReadonlySet<string>;
}

/** An object with the resource that it is written to. */
export interface WorldObject {
  readonly resource: Resource;
  readonly object: KubeObject;
}

/** A kind that is watched, with the selection of its objects and changes that decisions need. */
export interface Watched extends Selection {
  readonly resource: Resource;
  /**
   * Returns the names of the objects that the plan needs. Only these objects are watched, each with its own watch, so
   * that an RBAC rule can name them.
   */
  readonly namesIn?: (plan: KubeObject) => readonly string[];
  /**
   * True if read-only commands also work if the API server does not serve the kind, or if the permission to read it is
   * missing.
   */
  readonly optional?: boolean;
  /**
   * True if the kind only adds to what people read, and no decision depends on it. The leader then also works without
   * the right to read the kind. If an object appears or disappears, `isRelevant` gets an empty object in place of the
   * missing object.
   */
  readonly advisory?: boolean;
  /**
   * A dialect sets this member for a kind that few decisions need. It returns true once decisions need the kind, which is watched from then
   * on. Earlier decisions do not wait for the kind. `now` is in milliseconds.
   */
  isNeeded?(world: World, now: number): boolean;
  /** True if the user may not read the kind. In that case the engine treats the kind as if it had no objects. */
  readonly unreadable?: boolean;
  /** Returns false for a change that no decision depends on, such as a heartbeat. */
  isRelevant(before: KubeObject, after: KubeObject): boolean;
  /**
   * Returns the parts of an object that the cache stores: the parts that decisions read, and the parts that writes must
   * preserve.
   */
  readonly transform?: (object: KubeObject) => KubeObject;
}

/** An API server of the control plane. */
export interface Endpoint {
  /** The name of the API server in messages. */
  readonly name: string;
  /** The address of the API server; undefined if no object shows it. */
  readonly host: string | undefined;
  /** The Kubernetes version that the API server runs; undefined if no object shows it. */
  readonly version?: string | undefined;
}
