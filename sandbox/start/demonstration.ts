/** The contract of a demonstration: what `npm start -- --dialect <name>` starts, shows and removes again. */
import type { ParseArgsOptionsConfig } from 'node:util';

/** One for each dialect, listed in registry.ts. */
export interface Demonstration {
  readonly dialect: string;
  /** What is started and shown, in lines for the help text. */
  readonly about: readonly string[];
  /** Its own flags, as `parseArgs` takes them. */
  readonly flags: ParseArgsOptionsConfig;
  /** One line of help for each of these flags, in order. */
  readonly help: Readonly<Record<string, string>>;
  /**
   * Resolves with the exit code. Adds everything it starts to `ground.started`, which ends it in reverse order. Throws
   * REFIT_USAGE for bad flags before it starts anything.
   */
  readonly run: (flags: Flags, ground: Ground) => Promise<number>;
}

/** The given flags of the command line. */
export type Flags = Readonly<Record<string, string | boolean | undefined>>;

/** What every demonstration gets. */
export interface Ground {
  /** Removed afterwards. Processes named in its folder `pids` end with this one, whatever happens. */
  readonly directory: string;
  readonly started: AsyncDisposableStack;
  readonly abort: AbortSignal;
  readonly say: (line: string) => void;
  /** With `--keep`: says how to use the cluster, also in the lines of `more`, and resolves when somebody stops it. Called when the demonstration is over. */
  readonly keep?: ((kubeconfig: string, more?: readonly string[]) => Promise<void>) | undefined;
}
