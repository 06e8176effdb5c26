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
  /** When the lock lapses by itself, in RFC 3339; undefined if it never does. */
  readonly until?: string;
}

/** What is known of one lock, as plain data. */
export interface KnownLock {
  readonly tool: ToolName;
  /** The locks of others. While there is one, no node may start. */
  readonly others: readonly OtherLock[];
}

/** A lock by which a tool keeps all others from disrupting nodes. */
export interface LockKind {
  readonly tool: ToolName;
  /** What people call the lock, with its article. */
  readonly title: string;
  /** What the API server must let Refit read, as a clause. */
  readonly place: string;
  /** Resolves with the locks that others hold. Rejects if they cannot be read. */
  read(client: Pick<KubeClient, 'get'>, now: number, abort?: AbortSignal): Promise<OtherLock[]>;
}

/** An annotation that makes a tool leave a Node alone. */
export interface NodeMark {
  readonly key: string;
  readonly value: string;
  /** The annotation that names the plan of Refit that set `key`. */
  readonly ownerKey: string;
}

/** Returns the first taint of the Node with one of the keys. */
export function taintOn({ spec }: Node, keys: readonly string[]): string | undefined {
  return spec?.taints?.find(({ key }) => keys.includes(key))?.key;
}
