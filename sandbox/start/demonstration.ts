/** Owns the contract of a demonstration: what `npm start -- --dialect <name>` starts, shows and takes away again. */
import type { ParseArgsOptionsConfig } from 'node:util';

/** One for each dialect, listed in registry.ts. */
export interface Demonstration {
  readonly dialect: string;
  /** What is started and shown, in lines for the help text. */
  readonly about: readonly string[];
  /** Flags of its own, as `parseArgs` takes them. */
  readonly flags: ParseArgsOptionsConfig;
  /** Each of these flags with one line about it, in the order in which they are shown. */
  readonly help: Readonly<Record<string, string>>;
  /**
   * Resolves with the exit code. What it starts it hands to `ground.started`, which ends it in reverse order.
   * Throws REFIT_USAGE for values that it cannot take, before anything is started.
   */
  readonly run: (flags: Flags, ground: Ground) => Promise<number>;
}

/** What was given on the command line; a flag that was not given is absent. */
export type Flags = Readonly<Record<string, string | boolean | undefined>>;

/** What every demonstration gets. */
export interface Ground {
  /** Gone afterwards; has a folder `pids`, in which a process that is named ends with this one, whatever happens. */
  readonly directory: string;
  readonly started: AsyncDisposableStack;
  readonly abort: AbortSignal;
  readonly say: (line: string) => void;
}
