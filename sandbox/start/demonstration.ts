/** The contract of a demonstration: what `npm start -- --dialect <name>` starts, shows and removes again. */
import type { ParseArgsOptionsConfig } from 'node:util';

/** A demonstration. registry.ts lists one demonstration for each dialect. */
export interface Demonstration {
  readonly dialect: string;
  /** Lines of the help text: what the demonstration starts and shows. */
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

/** The parameters that every demonstration gets. */
export interface Ground {
  /**
   * A directory that is removed afterwards. Processes that are named in its folder `pids` end with this process in
   * every case.
   */
  readonly directory: string;
  readonly started: AsyncDisposableStack;
  readonly abort: AbortSignal;
  readonly say: (line: string) => void;
  /**
   * Only with `--keep`: prints how to use the cluster, and the lines of `more`, and resolves when the user stops the
   * cluster. Called at the end of the demonstration.
   */
  readonly keep?: ((kubeconfig: string, more?: readonly string[]) => Promise<void>) | undefined;
}
