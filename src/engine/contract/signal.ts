/** The contract of a signal: how a target is told to move, and how its report is read. */
import type { KubeObject, Resource } from '../../kube/resources.ts';
import type { AgentPolicy } from '../../signal/annotations.ts';
import type { DownloadState, Observation, PrefetchState, Signalling } from '../model/decision.ts';
import type { Reason } from '../model/reasons.ts';
import type { Rollout, Stage, Target } from '../model/rollout.ts';
import type { World, WorldObject } from './world.ts';

/** How a target is signalled and how its report is read. Pure: the engine carries out the instructions. */
export interface Signal<P extends KubeObject = KubeObject> {
  /** Tells what the target does about its last signal of this rollout. */
  read(world: World, rollout: Rollout, stage: Stage, target: Target, plan: P): Observation;
  /** For dialects whose targets are Nodes that report nothing themselves: the names of the Nodes with work. The other targets exist, and do nothing. */
  observable?(world: World): Pick<ReadonlyMap<string | undefined, unknown>, 'has'>;
  /** The version that the last signal of this rollout asked for, where an edit of an ended plan starts no other rollout. */
  askedOf?(world: World, rollout: Rollout, stage: Stage, target: Target): string | undefined;
  /** Starts the attempt named by the target's `since`; undefined if its object does not exist. */
  send(world: World, rollout: Rollout, signalling: Signalling, plan: P): MaybeInstruction;
  /** The object that shows whether the target has its signal; undefined if the signal writes no object. */
  touches(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    plan: P,
  ): TouchedObject | undefined;
  /** Tells the target that the leader did what it waits for; `now` in ms. */
  acknowledge?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    now: number,
  ): MaybeInstruction;
  /** Ends the attempt before it touches the service. */
  cancel?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    reason: Reason,
    now: number,
  ): MaybeInstruction;
  /** Whether the target could fetch its payload before its turn, or was asked to; undefined if it cannot. */
  prefetchOf?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
  ): PrefetchState | undefined;
  /** Asks the target to fetch its payload before its turn. The signal replaces this request. */
  prefetch?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    agent: AgentPolicy,
  ): MaybeInstruction;
  /** Ends the request of `prefetch`, and that of `checkDownloads`; undefined if the target has neither. */
  endPrefetch?(world: World, stage: Stage, target: Target): MaybeInstruction;
  /** What the target said about all its downloads; undefined if it cannot say anything. */
  downloadsOf?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
  ): DownloadState | undefined;
  /** Asks the target whether it could download what this rollout needs. The signal ends this request. */
  checkDownloads?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    agent: AgentPolicy,
  ): MaybeInstruction;
  /**
   * Must be carried out before a target is recorded as intended, or as failed. It is also carried out for an intended target
   * that another version of Refit has recorded.
   */
  remember?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    plan: P,
  ): MaybeInstruction;
  /** Must be carried out after the target is verified and before it is recorded as done. */
  finish?(world: World, rollout: Rollout, stage: Stage, target: Target, plan: P): MaybeInstruction;
}

/** Undefined if nothing needs to be written. */
type MaybeInstruction = Instruction | undefined;

/** An effect as data; it does no harm when repeated. */
export type Instruction =
  /** Writes the object only if it is unchanged on the server. */
  | { readonly kind: 'replace'; readonly resource: Resource; readonly object: KubeObject }
  /** An existing object of that name counts as created. */
  | { readonly kind: 'create'; readonly resource: Resource; readonly object: KubeObject }
  /** Deletes it in the background, only if it is unchanged on the server. */
  | { readonly kind: 'delete'; readonly resource: Resource; readonly object: KubeObject }
  /** Starts work outside the API, unless it runs already; resolves once it runs. */
  | { readonly kind: 'begin'; begin(): Promise<void> };

export interface TouchedObject extends WorldObject {
  /** True if the signal creates it. Otherwise the signal replaces or deletes it as it was observed. */
  readonly isAbsent?: boolean;
}
