/** The contract of a signal: how a target is signalled, and how its report is read. */
import type { KubeObject, Resource } from '../../kube/resources.ts';
import type { AgentPolicy } from '../../signal/annotations.ts';
import type { DownloadState, Observation, PrefetchState, Signalling } from '../model/decision.ts';
import type { Reason } from '../model/reasons.ts';
import type { Rollout, Stage, Target } from '../model/rollout.ts';
import type { World, WorldObject } from './world.ts';

/**
 * How a target is signalled, and how its report is read. A member that returns an instruction writes nothing itself: the engine carries the
 * instruction out. It returns undefined if nothing needs to be written, for example because the target's object does not exist.
 */
export interface Signal<P extends KubeObject = KubeObject> {
  /** Returns what the target does about its last signal of this rollout; the kind of the result is `none` if there is no such signal. */
  read(world: World, rollout: Rollout, stage: Stage, target: Target, plan: P): Observation;
  /** Returns the write that signals the target, and so starts the attempt that the target's `since` names. */
  send(world: World, rollout: Rollout, signalling: Signalling, plan: P): Instruction | undefined;
  /** Returns the object that shows whether the target has its signal; undefined if the signal writes no object. */
  touches(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    plan: P,
  ): TouchedObject | undefined;
  /**
   * Returns the names of the Nodes with work, for dialects whose targets are Nodes that report nothing themselves. Every other
   * target counts as one that exists and does nothing. Without this member, the engine reads every target.
   */
  observable?(world: World): Pick<ReadonlyMap<string | undefined, unknown>, 'has'>;
  /**
   * Returns the write that tells the target that the leader has done what the target waits for. `now` is in milliseconds. A dialect lacks
   * this member if its targets never wait for the leader.
   */
  acknowledge?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    now: number,
  ): Instruction | undefined;
  /**
   * Returns the write that ends the attempt before the target touches the service. `now` is in milliseconds. A dialect without this member
   * cannot cancel attempts.
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
   * Returns what must be written before a target is recorded as intended or failed. It is also written for an intended target that
   * another version of Refit has recorded.
   */
  remember?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    plan: P,
  ): Instruction | undefined;
  /** Returns what must be written after the target is verified and before it is recorded as done. */
  finish?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    plan: P,
  ): Instruction | undefined;
  /**
   * Returns the milliseconds that the target took for its last successful attempt, if that attempt belongs to an earlier stage or rollout;
   * undefined if nothing trustworthy shows it. Without this member, only the targets of a stage show how long the other targets take.
   */
  earlierMs?(world: World, rollout: Rollout, stage: Stage, target: Target): number | undefined;
  /** Lets targets download ahead. Without it, targets download only once they are signalled. */
  readonly downloads?: DownloadRequests;
}

/** Asks targets to download before their signal, or to check whether they could. A signal replaces both requests. */
export interface DownloadRequests {
  /** Returns whether the target can be asked to fetch its payload ahead, or was asked already; undefined if it cannot fetch ahead. */
  prefetchOf(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
  ): PrefetchState | undefined;
  /** Returns the write that asks the target to fetch its payload ahead. */
  prefetch(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    agent: AgentPolicy,
  ): Instruction | undefined;
  /** Returns the target's answer about all of its downloads; undefined if it cannot answer. */
  checkOf(world: World, rollout: Rollout, stage: Stage, target: Target): DownloadState | undefined;
  /** Returns the write that asks the target whether it could download everything that this rollout needs. */
  check(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    agent: AgentPolicy,
  ): Instruction | undefined;
  /** Returns the write that ends the requests of `prefetch` and `check`; undefined if the target has neither request. */
  end(world: World, stage: Stage, target: Target): Instruction | undefined;
}

/** A write or another effect, as data. The engine may repeat it without harm. */
export type Instruction =
  /** Writes the object only if it is unchanged on the server. */
  | { readonly kind: 'replace'; readonly resource: Resource; readonly object: KubeObject }
  /** Creates the object. An existing object of that name counts as created. */
  | { readonly kind: 'create'; readonly resource: Resource; readonly object: KubeObject }
  /** Deletes the object in the background, only if it is unchanged on the server. */
  | { readonly kind: 'delete'; readonly resource: Resource; readonly object: KubeObject }
  /** Starts work outside the API, unless it runs already. The promise resolves once the work runs. */
  | { readonly kind: 'begin'; begin(): Promise<void> };

/** An object that the signal of a target writes. */
export interface TouchedObject extends WorldObject {
  /** True if the signal creates the object. Otherwise the object exists, and the signal replaces or deletes the observed version of it. */
  readonly isAbsent?: boolean;
}
