/** The contract of a signal: how a target is signalled, and how its report is read. */
import type { KubeObject, Resource } from '../../kube/resources.ts';
import type { AgentPolicy } from '../../signal/annotations.ts';
import type { Signalling } from '../model/decision.ts';
import type { DownloadState, PrefetchState, RequiredDownload } from '../model/downloads.ts';
import type { Observation } from '../model/facts.ts';
import type { Reason } from '../model/reasons.ts';
import type { Rollout, Stage, Target } from '../model/rollout.ts';
import type { World, WorldObject } from './world.ts';

/** A write to the object of one target. */
export interface TargetWrite {
  readonly stage: Stage;
  readonly target: Target;
  readonly instruction: Instruction;
}

/**
 * How a target is signalled, and how its report is read. If a member returns an instruction, it writes nothing itself;
 * the engine carries the instruction out. The member returns undefined if nothing needs to be written, for example
 * because the object of the target does not exist.
 */
export interface Signal<P extends KubeObject = KubeObject> {
  /**
   * Returns the reaction of the target to its last signal of this rollout. The kind of the result is `none` if there is
   * no such signal.
   */
  read(world: World, rollout: Rollout, stage: Stage, target: Target, plan: P): Observation;
  /**
   * Returns the write that signals the target, and so starts an attempt. The `since` of the target identifies this
   * attempt.
   */
  send(world: World, rollout: Rollout, signalling: Signalling, plan: P): Instruction | undefined;
  /**
   * Returns the object that shows whether the target has received its signal; undefined if the signal writes no object.
   */
  touches(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    plan: P,
  ): TouchedObject | undefined;
  /**
   * Returns the names of the Nodes with work. This member is for dialects whose targets are Nodes that report nothing
   * themselves. The engine assumes that every other target exists and does no work. Without this member, the engine
   * reads every target.
   */
  observable?(world: World): Pick<ReadonlyMap<string | undefined, unknown>, 'has'>;
  /**
   * Returns the write that informs the target that the leader has completed the action for which the target waits.
   * `now` is in milliseconds. A dialect lacks this member if its targets never wait for the leader.
   */
  acknowledge?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    now: number,
  ): Instruction | undefined;
  /**
   * Returns the write that ends the attempt before the target changes or stops the service. `now` is in milliseconds. A
   * dialect without this member cannot cancel attempts.
   */
  cancel?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    reason: Reason,
    now: number,
  ): Instruction | undefined;
  /**
   * Returns the write that must be done before a target is recorded as intended or failed. It is also done for an
   * intended target that another version of Refit has recorded.
   */
  remember?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    plan: P,
  ): Instruction | undefined;
  /**
   * Returns the write that keeps the success of the target until the target is done, because the object that reports it
   * may be deleted before. It is asked for an observation with `isUnkept`.
   */
  keepReport?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
  ): Instruction | undefined;
  /** Returns the write that must be done after the target is verified and before it is recorded as done. */
  finish?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    plan: P,
  ): Instruction | undefined;
  /**
   * Returns how many milliseconds the upgrade of a target that is done took in this rollout; undefined if no trustworthy
   * data show it. Without this member, the times that the target reports count. A dialect with `observable` has no
   * reports of targets that are done, so only this member can say their times.
   */
  tookMs?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    plan: P,
  ): number | undefined;
  /**
   * Returns how many milliseconds the last successful attempt of the target took, if that attempt belongs to an earlier
   * stage or rollout; undefined if no trustworthy data show it. Without this member, the duration is estimated only
   * from other targets of the same stage.
   */
  earlierMs?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    plan: P,
  ): number | undefined;
  /** Lets targets download before they are signalled. Without this member, targets download only after their signal. */
  readonly downloads?: DownloadRequests<P>;
}

/**
 * Asks targets to download before their signal, or to check whether they could download. A signal replaces both
 * requests. A target downloads either if it can (`prefetchOf`), or because it must (`requiredOf`).
 */
export interface DownloadRequests<P extends KubeObject = KubeObject> {
  /**
   * Returns the state of the download that the target must complete before its node is cordoned; undefined if the target may
   * start without it. Without this member, no target must download before it starts.
   */
  requiredOf?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    plan: P,
  ): RequiredDownload | undefined;
  /**
   * Returns whether the target can be asked to download its payload in advance, or was already asked; undefined if the
   * target cannot download in advance.
   */
  prefetchOf?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
  ): PrefetchState | undefined;
  /** Returns the write that asks the target to download its payload in advance. */
  prefetch(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    agent: AgentPolicy,
  ): Instruction | undefined;
  /** Returns the target's answer about all of its downloads; undefined if it cannot answer. */
  checkOf?(world: World, rollout: Rollout, stage: Stage, target: Target): DownloadState | undefined;
  /** Returns the write that asks the target whether it could download everything that this rollout needs. */
  check?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    agent: AgentPolicy,
  ): Instruction | undefined;
  /** Returns the write that ends the requests of `prefetch` and `check`; undefined if the target has neither request. */
  end(world: World, stage: Stage, target: Target, rollout: Rollout): Instruction | undefined;
}

/** A write or another effect, as data. The engine may repeat it without harm. */
export type Instruction =
  /** Writes the object only if it is unchanged on the server. */
  | { readonly kind: 'replace'; readonly resource: Resource; readonly object: KubeObject }
  /** Creates the object. If an object with that name already exists, the instruction counts as successful. */
  | { readonly kind: 'create'; readonly resource: Resource; readonly object: KubeObject }
  /** Deletes the object with background propagation, but only if it is unchanged on the server. */
  | { readonly kind: 'delete'; readonly resource: Resource; readonly object: KubeObject }
  /** Starts work outside the API, unless it runs already. The promise resolves once the work runs. */
  | { readonly kind: 'begin'; begin(): Promise<void> };

/** An object that the signal of a target writes. */
export interface TouchedObject extends WorldObject {
  /** True if the signal creates the object. Otherwise the object exists, and the signal replaces or deletes the observed version of it. */
  readonly isAbsent?: boolean;
}
