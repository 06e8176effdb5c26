/** The state of one node: its object's versions, its agent's memory and its host. */
import type { Journal } from '../../src/agent/journal.ts';
import { IDLE } from '../../src/agent/journal.ts';
import type { KubeObject } from '../../src/kube/resources.ts';
import type { HookJob } from './hook-runs.ts';
import type { Host } from './host.ts';
import { freshHost } from './host.ts';
import type { Numbering } from './numbering.ts';

export interface NodeState {
  /** Every version that the object ever had, as numbers of contents. The n-th entry has the resourceVersion n. */
  readonly versions: readonly number[];
  /**
   * The oldest resourceVersion that the agent may see. The agent sees no version from before its start or before its
   * own last write.
   */
  readonly floor: number;
  /** False from the agent's start until it has seen the object. */
  readonly known: boolean;
  /** The journal on the disk. A running agent has the same journal in memory. */
  readonly journal: Journal;
  readonly host: Host;
  /** Attempts that the agent left to k0s's own agent. They are on the disk, like the journal. */
  readonly left: readonly string[];
  /**
   * True if the object has changed since k0s's own agent last ended the service. That agent ends the service only when
   * the object is updated.
   */
  readonly isChanged: boolean;
  /**
   * What the leader process knows about its drain of the node. The knowledge is only in memory, and is lost when the
   * process ends.
   */
  readonly drain: 'none' | 'draining' | 'drained';
  /** True if somebody else cordoned the node. In the model, nobody removes this cordon. */
  readonly keptClosed: boolean;
  /** The Jobs of hooks for the node. */
  readonly hookJobs: readonly HookJob[];
  /** The number of crashes that only this node may still have. Further crashes count as faults, which all nodes share. */
  readonly crashes: number;
}

export interface Beginning {
  /** Number of the content of its object. */
  readonly content: number;
  /** The file that runs on the node. */
  readonly file: string;
  readonly hasPods: boolean;
  readonly keptClosed: boolean;
  readonly crashes: number;
}

export function freshNode({ content, file, hasPods, ...more }: Beginning): NodeState {
  const agent = { floor: 1, known: true, journal: IDLE };
  return {
    versions: [content],
    ...agent,
    host: freshHost(file, hasPods),
    left: [],
    isChanged: true,
    drain: 'none',
    hookJobs: [],
    ...more,
  };
}

/** Returns the node after a write of its object, which adds one version. It does not matter who wrote it. */
export function written(node: NodeState, content: number): NodeState {
  return { ...node, versions: [...node.versions, content], isChanged: true };
}

/** An object as the API server would send it at this resourceVersion. */
export function objectAt<T extends KubeObject>(
  contents: Numbering<T>,
  versions: readonly number[],
  version = versions.length,
): T {
  const content = contents.valueOf(versions[version - 1] ?? -1);
  return { ...content, metadata: { ...content.metadata, resourceVersion: String(version) } };
}

/** The number of an object's content, whatever its resourceVersion is. */
export function contentOf<T extends KubeObject>(contents: Numbering<T>, object: T): number {
  const { resourceVersion: _, ...metadata } = object.metadata;
  return contents.numberOf({ ...object, metadata });
}
