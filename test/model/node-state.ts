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
  /** The oldest resourceVersion that the agent may see: none from before its start or before its own last write. */
  readonly floor: number;
  /** False from the agent's start until it has seen the object. */
  readonly known: boolean;
  /** On the disk; a running agent has the same in memory. */
  readonly journal: Journal;
  readonly host: Host;
  /** Attempts that the agent left to k0s's own one, on the disk like the journal. */
  readonly left: readonly string[];
  /** True where its object changed since k0s's own agent last ended the service: it does so at updates of the object only. */
  readonly isChanged: boolean;
  /** The leader process's knowledge of its drain of the node. It is only in memory, and lost with the process. */
  readonly drain: 'none' | 'draining' | 'drained';
  /** True where somebody else cordoned the node; nobody takes that back here. */
  readonly keptClosed: boolean;
  /** The Jobs of hooks for the node. */
  readonly hookJobs: readonly HookJob[];
  /** The number of crashes that the node has left for itself. Further crashes count as faults, which all nodes share. */
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
