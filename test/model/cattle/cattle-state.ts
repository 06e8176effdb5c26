/** The state of an exploration of Rancher's Plans, and what its invariants read of it. */
import type { CattlePlan } from '../../../src/api/cattle/plan.ts';
import { holds } from '../../../src/dialects/cattle/plan/conditions.ts';
import { attemptKeyOf, NODE_LABEL } from '../../../src/dialects/cattle/plan/names.ts';
import type { Job, KubeObject, Node } from '../../../src/kube/resources.ts';
import type { Drained } from '../deeds.ts';
import type { HookJob } from '../hook-runs.ts';
import type { Contents, NodePast } from '../object-states.ts';
import type { CattleMove } from './cattle-objects.ts';

/** What the model remembers of one node, and no leader can read. */
export interface JobPast extends NodePast {
  /** True if a person cordoned the node while nobody else had cordoned it. */
  readonly keptClosed: boolean;
  /** The version that the last Job installed and the kubelet has not reported yet; empty if there is none. */
  readonly unreported: string;
  /** The hashes of the Jobs that have succeeded on the node. */
  readonly succeeded: readonly string[];
  /**
   * The version of the Plan of each Job that was created for the node, the oldest first. A Job that a person deleted in
   * order to try the node again is left out.
   */
  readonly installed: readonly string[];
  /** The attempts for which a Job of the hook was created, the oldest first. */
  readonly hooked: readonly string[];
  /** True if a Job started although the node was to be drained and had pods. */
  readonly startedUndrained: boolean;
  /** True if a Job was created before the Job of the hook for its attempt had succeeded. */
  readonly startedUnhooked: boolean;
}

export interface CattleState {
  /** The index of the present moment in TIMES. */
  readonly time: number;
  readonly objects: Contents;
  readonly drains: Drained;
  readonly hookJobs: readonly HookJob[];
  /** The moves that may still be made. */
  readonly moves: readonly CattleMove[];
  readonly past: readonly JobPast[];
}

/** One state as the invariants read it. */
export interface CattleGlance {
  readonly plan: CattlePlan;
  readonly jobs: readonly Job[];
  readonly nodes: ReadonlyMap<string, Node>;
  readonly past: readonly JobPast[];
}

export function freshPast(name: string): JobPast {
  return {
    name,
    keptClosed: false,
    isEmpty: false,
    unreported: '',
    succeeded: [],
    installed: [],
    hooked: [],
    startedUndrained: false,
    startedUnhooked: false,
  };
}

export function hasEnded(job: Job): boolean {
  return (holds(job, 'Complete') ?? holds(job, 'Failed')) !== undefined;
}

/** Returns true if the Job has pods: it is not suspended, and has not ended. */
export function isAtWork(job: Job): boolean {
  return job.spec?.['suspend'] !== true && !hasEnded(job);
}

export function nodeOfJob({ metadata }: KubeObject): string {
  return metadata.labels?.[NODE_LABEL] ?? '';
}

/**
 * Returns the record of the attempt on the Node as text, without the times of its Job; empty if there is none. An edit
 * and its reversal at one moment of the clock begin two attempts, which only the generation of the Plan tells apart.
 */
export function attemptOf({ metadata }: Node, plan: CattlePlan): string {
  const text = metadata.annotations?.[attemptKeyOf(plan.metadata)];
  if (text === undefined) return '';
  const { hash, since } = JSON.parse(text) as Record<'hash' | 'since', string>;
  return `${hash} ${plan.metadata.generation} ${since}`;
}

/** Returns the hash and the generation of the Plan for which the attempt began. */
export function versionOf(attempt: string): string {
  return attempt.split(' ').slice(0, -1).join(' ');
}

/** Returns the moment at which the attempt began, in RFC 3339. */
export function momentOf(attempt: string): string {
  return attempt.split(' ').at(-1) ?? '';
}
