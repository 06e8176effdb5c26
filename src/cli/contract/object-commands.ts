/**
 * The contract of the commands for objects that are no plans, but have plans made for them, such as `machine/NAME`. The
 * dialect of these plans carries the commands out.
 */
import type { KubeClient } from '../../kube/client.ts';
import type { Node } from '../../kube/resources.ts';
import type { Clock } from '../../util/clock.ts';
import type { DryRunFlags } from '../controls/dry-run.ts';
import type { ConnectionFlags } from '../options.ts';
import type { Output } from '../output.ts';

/** What a command needs that reads no plans. */
export interface CommandParts {
  readonly clock: Clock;
  readonly output: Output;
  readonly abort: AbortSignal;
}

export interface ObjectFlags extends ConnectionFlags, DryRunFlags {
  readonly plan?: string;
}

export interface ApproveFlags extends ObjectFlags {
  readonly namespace: string;
}

export interface PreviewFlags extends ConnectionFlags {
  /** The cluster whose objects are previewed. */
  readonly cluster?: string;
  readonly to?: string;
  readonly namespace?: string;
  readonly output: 'text' | 'json';
}

/** Targets of a plan. `refit retry` tries them again, so that each of them keeps its place in the plan. */
export interface TargetsToRetry {
  readonly names: readonly string[];
  /** The name of the plan; undefined if the user named a target, so that `refit retry` finds the plan. */
  readonly plan: string | undefined;
}

export interface ObjectCommands {
  /**
   * Tries the work for the object or for its node again. Resolves with true if it did so, and with false if no work for
   * such an object has failed. If the object is a target of a plan with several targets, changes nothing, and resolves
   * with the target.
   */
  retry(name: string, flags: ObjectFlags, parts: CommandParts): Promise<boolean | TargetsToRetry>;
  /** Resolves with sentences about what a hold of these Nodes means for objects of the dialect; with none if it means nothing. */
  held(nodes: readonly Node[], client: KubeClient, abort: AbortSignal): Promise<readonly string[]>;
  /** Approves what waits for an approval. `named` is the kind and the name of the object. */
  approve(named: string, flags: ApproveFlags, parts: CommandParts): Promise<void>;
  /** Shows what would happen to each object with another version. Resolves with the exit code. */
  preview(flags: PreviewFlags, parts: CommandParts): Promise<number>;
}
