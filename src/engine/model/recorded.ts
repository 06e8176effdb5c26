/** What is recorded of a rollout: plain data. A new leader decides from this and from what it observes. */
import { apiVersionOf, type Resource } from '../../kube/resources.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Reason } from './reasons.ts';

export type Role = 'controller' | 'worker';

/** What is downloaded so that a target can move: one for each platform. */
export interface Payload {
  readonly url: string;
  /** Lower-case hex; absent where the plan asks for no verification. */
  readonly sha256?: string;
}

/** All that is ever recorded of a target. Whatever is finer than this is read from the node when it is needed. */
export type RecordedState = 'pending' | 'intended' | 'done' | 'failed' | 'missing' | 'unsupported';

export interface Target {
  /** Unique in the rollout. */
  readonly key: string;
  readonly name: string;
  readonly state: RecordedState;
  /** RFC 3339: when the state was recorded. While it is `intended` this also names the attempt. */
  readonly since: string;
}

/** Targets that may move together; stages run strictly one after the other. */
export interface Stage {
  readonly id: string;
  /** Index of the command in the plan that this stage belongs to. */
  readonly command: number;
  readonly role: Role;
  /** How many targets may move at once; controllers never more than one, whatever stands here. */
  readonly maxInFlight: number;
  /** What every target has when it is done, as its plan writes it. */
  readonly version: string;
  /** By platform, `<os>-<architecture>`; absent where targets need nothing that depends on it. */
  readonly payloads?: Readonly<Record<string, Payload>>;
  /** What its targets were selected by, for people; absent where they were listed, or nobody asked for any. */
  readonly selection?: string | undefined;
  /** What is done with the payload, in the words of the dialect; the engine does not look into it. */
  readonly procedure?: string;
  /** True where targets run afterwards what they ran before. */
  readonly keepsVersion?: boolean;
  /** Moves a target even if it already has what the payload would bring. */
  readonly forced: boolean;
  /** A target that failed keeps its slot while the others go on, instead of stopping everything; the stage is not over then. */
  readonly failedHoldSlots?: boolean;
  /** Milliseconds that a target keeps its slot after it succeeded; none where absent. */
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

/** One run of one plan. Frozen when it is made, but for states. */
export interface Rollout {
  readonly source: Source;
  /** The plan's own name for this run: together with the source's uid it names every signal. */
  readonly id: string;
  readonly phase: RolloutPhase;
  /** True while a slot is free, targets are pending, and a gate lets none of them start. */
  readonly blocked: boolean;
  /** Why it ended, where it did not end well. */
  readonly reason?: Reason | undefined;
  readonly stages: readonly Stage[];
  /** What is wrong with the plan as it stands now: nothing starts while this is not empty. */
  readonly problems: readonly Reason[];
  /** Why part of the record cannot be seen: nothing at all is done until it can. */
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
