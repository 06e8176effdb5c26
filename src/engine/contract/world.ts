/** What a dialect reads: the watched objects, which kinds are watched, and the API servers that they show. */
import type { Selection } from '../../kube/client.ts';
import type { KubeObject, Resource } from '../../kube/resources.ts';

/** The objects that a decision may look at, as watches show them. Only watched kinds can be read. */
export interface World {
  list<T extends KubeObject>(resource: Resource<T>): readonly T[];
  get<T extends KubeObject>(resource: Resource<T>, name: string, namespace?: string): T | undefined;
  /** Names of the objects whose own write the watch has not shown yet: it may lack earlier writes of others, too. */
  outdated?(resource: Resource): ReadonlySet<string>;
}

/** An object with the resource that it is written to. */
export interface WorldObject {
  readonly resource: Resource;
  readonly object: KubeObject;
}

/** A kind that is watched, and which of its objects and changes matter. */
export interface Watched extends Selection {
  readonly resource: Resource;
  /** Only the objects that plans name are watched, one by one, so that a role can name them. */
  readonly namesIn?: (plan: KubeObject) => readonly string[];
  /** True if read-only commands work without it, when the kind or the right to read it is missing. */
  readonly optional?: boolean;
  /**
   * No decision depends on it, only what people read: the leader also works without the right to read it.
   * `isRelevant` compares an object that comes or goes with an empty one.
   */
  readonly advisory?: boolean;
  /** The kind is read only once this returns true, because few decisions need it. Decisions before that do not wait for it. */
  isNeeded?(world: World, now: number): boolean;
  /** True if the user may not read it: then it looks empty. */
  readonly unreadable?: boolean;
  /** False for a change that no decision depends on, such as a heartbeat. */
  isRelevant(before: KubeObject, after: KubeObject): boolean;
  /** What the cache keeps of an object: everything that decisions read and that writes must not lose. */
  readonly transform?: (object: KubeObject) => KubeObject;
}

/** An API server of the control plane. */
export interface Endpoint {
  /** Names the API server for people. */
  readonly name: string;
  /** Its address; undefined if nothing tells it. */
  readonly host: string | undefined;
  /** The Kubernetes version that it is known to run. */
  readonly version?: string | undefined;
}
