/** Defines what Refit knows about another tool that disrupts nodes. Each tool has a file of its own. */
import type { KubeClient } from '../kube/client.ts';
import type { Node } from '../kube/resources.ts';

/** The names of the tools, as `spec.coordinate` of an UpgradePolicy has them. */
export type ToolName =
  | 'ClusterAutoscaler'
  | 'Karpenter'
  | 'Kured'
  | 'GPUOperator'
  | 'DisruptionLease';

/** What another tool does to a node now. */
export interface OtherWork {
  readonly tool: ToolName;
  /** A clause that follows the name of the node and a colon. It names the tool and what shows its work. */
  readonly message: string;
  /** A clause that follows "when". It says what ends the work, and what people can do about it. */
  readonly ends: string;
}

export interface Tool {
  readonly name: ToolName;
  /** What Refit writes on a Node that it works on; undefined if the tool knows no such annotation. */
  readonly mark?: NodeMark;
  /** Returns the work of the tool that the Node itself shows; undefined if it shows none. */
  readonly workOn?: (node: Node) => Omit<OtherWork, 'tool'> | undefined;
}

/** A lock that another tool holds, as plain data. */
export interface OtherLock {
  readonly tool: ToolName;
  /** One sentence that names the tool and, if it is known, the node that the lock is held for. */
  readonly message: string;
  /** A clause that follows "when". It says what ends the wait, and what people can do about it. */
  readonly ends: string;
  /** When the lock expires, in RFC 3339; undefined if it never expires. */
  readonly until?: string;
}

/** What is known of one lock, as plain data. */
export interface KnownLock {
  readonly tool: ToolName;
  /** The locks of others. While there is one, no node may start. */
  readonly others: readonly OtherLock[];
  /** True if Refit holds the lock, or if the other tool is not there, so that no lock exists; undefined if the lock could not be read. */
  readonly isOurs?: boolean;
  /** Why Refit could not take the lock at the last try. */
  readonly problem?: string;
}

/** A lock by which a tool keeps all others from disrupting nodes. */
export interface LockKind {
  readonly tool: ToolName;
  /** What people call the lock, with its article. */
  readonly title: string;
  /** What the API server must let Refit read, as a clause. */
  readonly place: string;
  /** How Refit takes the lock for itself: the rights that it needs, and its times. */
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

export type LockClient = Pick<KubeClient, 'get' | 'create' | 'replace' | 'patch'>;

/** One look at a lock. */
export interface Look {
  /** The name under which Refit takes the lock. */
  readonly holder: string;
  /** Says whether a lock with this holder is the one of Refit. */
  readonly isOwn: (holder: string) => boolean;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** Returns the age of a renewal in milliseconds. `written` is the time that its holder wrote. */
  readonly ageOf: (renewal: string, written: string | undefined) => number;
  readonly abort?: AbortSignal;
}

/** A lock as one look found it. A write is refused if somebody has changed the lock since. */
export interface LockView {
  readonly others: readonly OtherLock[];
  /**
   * When Refit renewed its lock last, in milliseconds since the Unix epoch; undefined if Refit does not hold it. If the time is long ago,
   * the lock is renewed at once. If the other tool is not there, it is the time of the look, and there is nothing to take.
   */
  readonly renewedAt?: number | undefined;
  /** Takes or renews the lock. Call it only while no other holds it. */
  take?(): Promise<void>;
  /** Gives the lock back. Call it only while Refit holds it. */
  giveBack?(): Promise<void>;
}

/** An annotation that makes a tool leave a Node alone. */
export interface NodeMark {
  readonly key: string;
  readonly value: string;
  /** The annotation that names the plan of Refit that set `key`. */
  readonly ownerKey: string;
}

/** Returns the key of the first taint of the Node that has one of these keys; undefined if there is none. */
export function taintOn({ spec }: Node, keys: readonly string[]): string | undefined {
  return spec?.taints?.find(({ key }) => keys.includes(key))?.key;
}
