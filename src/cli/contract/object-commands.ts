/**
 * The contract of the commands for objects that are no plans, but have plans made for them, such as `machine/NAME`. The
 * dialect of these plans carries the commands out.
 */
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

export interface ObjectCommands {
  /** Tries the work for the object or for its node again. Resolves with false if no work for such an object has failed. */
  retry(name: string, flags: ObjectFlags, parts: CommandParts): Promise<boolean>;
  /** Approves what waits for an approval. `named` is the kind and the name of the object. */
  approve(named: string, flags: ApproveFlags, parts: CommandParts): Promise<void>;
  /** Shows what would happen to each object with another version. Resolves with the exit code. */
  preview(flags: PreviewFlags, parts: CommandParts): Promise<number>;
}
