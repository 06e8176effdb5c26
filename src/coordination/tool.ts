/** Defines what Refit knows about another tool that disrupts nodes. Each tool has a file of its own. */
import type { KubeClient } from '../kube/client.ts';
import type { Node } from '../kube/resources.ts';

/** The names of the tools, as they are written in `spec.coordinate` of an UpgradePolicy. */
export type ToolName =
  | 'ClusterAutoscaler'
  | 'Karpenter'
  | 'Kured'
  | 'GPUOperator'
  | 'DisruptionLease';

/** The work that another tool does on a node now. */
export interface OtherWork {
  readonly tool: ToolName;
  /**
   * A clause that follows the name of the node and a colon. It names the tool and the part of the Node that shows its
   * work.
   */
  readonly message: string;
  /** A clause that follows "when". It says what ends the work, and what people can do about it. */
  readonly ends: string;
}

export interface Tool {
  readonly name: ToolName;
  /** The name of the tool in sentences, with its article if it has one. */
  readonly title: string;
  /**
   * The API group of the kinds that the tool installs. Undefined if the tool has no kinds of its own. Then the API server
   * does not show whether the tool runs.
   */
  readonly group?: string;
  /** The annotation that Refit writes on a Node in progress; undefined if the tool has no such annotation. */
  readonly mark?: NodeMark;
  /** Returns the work of the tool that is visible on the Node; undefined if no work is visible. */
  readonly workOn?: (node: Node) => Omit<OtherWork, 'tool'> | undefined;
}

/** A lock that another tool holds, as plain data. */
export interface OtherLock {
  readonly tool: ToolName;
  /** One sentence that names the tool and, if it is known, the node for which the lock is held. */
  readonly message: string;
  /** A clause that follows "when". It says what ends the wait, and what people can do about it. */
  readonly ends: string;
  /** When the lock expires, in RFC 3339; undefined if it never expires. */
  readonly until?: string;
}

/** The known state of one lock, as plain data. */
export interface KnownLock {
  readonly tool: ToolName;
  /** The locks of others. While there is such a lock, no node may start. */
  readonly others: readonly OtherLock[];
  /**
   * True if Refit holds the lock, or if the other tool is not installed, so that no lock exists. Undefined if the lock
   * could not be read.
   */
  readonly isOurs?: boolean;
  /** The reason why Refit could not take the lock at the last attempt. */
  readonly problem?: string;
  /** True if no right would let Refit take the lock, because a quota or an admission rule refused the last attempt. */
  readonly isBarred?: boolean;
  /** A sentence that says that the other tool was not found, so that nothing waits for it; undefined if it was found. */
  readonly notFound?: string;
}

/** A lock with which a tool prevents all other tools from disrupting nodes. */
export interface LockKind {
  readonly tool: ToolName;
  /** The usual name of the lock, with its article. */
  readonly title: string;
  /** A clause that names the objects that the API server must let Refit read. */
  readonly place: string;
  /** The rights and the times that Refit needs to take the lock. */
  readonly taking: {
    /** The command that prints the rights that Refit needs to take the lock. Messages name this command. */
    readonly rights: string;
    /** Milliseconds after which a lock that Refit holds is renewed. */
    readonly renewMs: number;
    /** Milliseconds after which others may take a lock that was not renewed. */
    readonly lastsMs: number;
  };
  /** Resolves with the lock as it is now. Rejects if it cannot be read. */
  look(client: LockClient, look: Look): Promise<LockView>;
}

export type LockClient = Pick<KubeClient, 'get' | 'listAll' | 'create' | 'replace' | 'patch'>;

/** The parameters of one check of a lock. */
export interface Look {
  /** The name under which Refit takes the lock. */
  readonly holder: string;
  /** Returns true if a lock with this holder belongs to Refit. */
  readonly isOwn: (holder: string) => boolean;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** Returns the age of a renewal in milliseconds. `written` is the time that its holder wrote. */
  readonly ageOf: (renewal: string, written: string | undefined) => number;
  readonly abort?: AbortSignal;
}

/** The state of a lock in one check. A write is refused if somebody has changed the lock since this check. */
export interface LockView {
  readonly others: readonly OtherLock[];
  /**
   * The time at which Refit last renewed its lock, in milliseconds since the Unix epoch; undefined if Refit does not
   * hold the lock. If the time is long ago, Refit renews the lock at once. If the other tool is not installed, this is
   * the time of the check, and Refit takes no lock.
   */
  readonly renewedAt?: number | undefined;
  /**
   * The part of a lock with several parts that Refit holds, if it does not hold all of them. Then `renewedAt` of the
   * whole lock is undefined.
   */
  readonly part?: { readonly renewedAt: number; renew(): Promise<void> };
  /** A sentence that says that the other tool was not found; undefined if it was found. */
  readonly notFound?: string;
  /** Takes or renews the lock. Call it only while nobody else holds the lock. */
  take?(): Promise<void>;
  /** Releases the lock, or the part of it that Refit holds. Call it only while Refit holds the lock or a part of it. */
  giveBack?(): Promise<void>;
}

/** An annotation that tells a tool not to disrupt a Node. */
export interface NodeMark {
  readonly key: string;
  readonly value: string;
  /** The annotation that names the plan for which Refit set `key`. */
  readonly ownerKey: string;
}

/** Returns the key of the first taint of the Node that has one of these keys; undefined if there is none. */
export function taintOn({ spec }: Node, keys: readonly string[]): string | undefined {
  return spec?.taints?.find(({ key }) => keys.includes(key))?.key;
}
