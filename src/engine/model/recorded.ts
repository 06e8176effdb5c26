/** The record of a rollout: plain data. A new leader decides from it and from what it observes. */
import { apiVersionOf, type Resource } from '../../kube/resources.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Reason } from './reasons.ts';

export type Role = 'controller' | 'worker';

/** What is downloaded so that a target can move: one for each platform. */
export interface Payload {
  readonly url: string;
  /** Lower-case hex; without it the download is not verified. */
  readonly sha256?: string;
}

/** Details beyond this are read from the node when needed. */
export type RecordedState = 'pending' | 'intended' | 'done' | 'failed' | 'missing' | 'unsupported';

export interface Target {
  /** Unique in the rollout. */
  readonly key: string;
  readonly name: string;
  readonly state: RecordedState;
  /** RFC 3339: when the state was recorded. Of an `intended` target it also names the attempt. */
  readonly since: string;
}

/** Targets that may move together. Stages run one after the other. */
export interface Stage {
  readonly id: string;
  /** Index of the command in the plan that this stage belongs to. */
  readonly command: number;
  readonly role: Role;
  /** How many targets may move at once; of controllers never more than one. */
  readonly maxInFlight: number;
  /** The version of each target when it is done, as the plan writes it. */
  readonly version: string;
  /** By platform, `<os>-<architecture>`; absent if targets need no download. */
  readonly payloads?: Readonly<Record<string, Payload>>;
  /** The selector of its targets, for people; absent if the plan lists them. */
  readonly selection?: string | undefined;
  /** What to do with the payload; only the dialect reads it. */
  readonly procedure?: string;
  /** True if the version of the targets does not change. */
  readonly keepsVersion?: boolean;
  /** Upgrades a target even if it has the version already. */
  readonly forced: boolean;
  /** A failed target keeps its slot and the others continue; the stage is over once all are done. */
  readonly failedHoldSlots?: boolean;
  /** Milliseconds that a target keeps its slot after its success. */
  readonly restMs?: number;
  readonly targets: readonly Target[];
}

/**
 * new: nothing is recorded yet · running · done · failed: a target failed · incomplete: a target is missing or its
 * platform is · invalid: the plan cannot be carried out as written.
 */
export type RolloutPhase = 'new' | 'running' | 'done' | 'failed' | 'incomplete' | 'invalid';

export interface Source {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  /** RFC 3339: when the plan was created. */
  readonly created: string;
}

/** One run of one plan. Only states change after it is made. */
export interface Rollout {
  readonly source: Source;
  /** The plan's name for this run: with the source's uid it names every signal. */
  readonly id: string;
  readonly phase: RolloutPhase;
  /** True while a slot is free, targets are pending, and a gate lets none of them start. */
  readonly blocked: boolean;
  /** Why it failed or was refused. */
  readonly reason?: Reason | undefined;
  readonly stages: readonly Stage[];
  /** What is wrong with the plan now: nothing starts until it is corrected. */
  readonly problems: readonly Reason[];
  /** Why part of the record cannot be read: nothing is done until it can. */
  readonly unread?: Reason | undefined;
}

export function isFinal(rollout: Rollout): boolean {
  return rollout.phase !== 'new' && rollout.phase !== 'running';
}

export function sourceOf<P extends KubeObject>(resource: Resource<P>, { metadata }: P): Source {
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    name: metadata.name,
    uid: metadata.uid ?? '',
    created: metadata.creationTimestamp ?? '',
  };
}
