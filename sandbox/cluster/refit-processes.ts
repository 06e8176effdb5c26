/** Starts the processes of Refit in a stand-in cluster, each with a log file in the directory of the cluster. */
import { systemClock } from '../../src/util/clock.ts';
import { type Process, startProcess } from '../../tools/controlplane/process.ts';

/** Variables of a process, in addition to PATH and HOME. */
type Environment = Readonly<Record<string, string>> | undefined;

/** Short, so that a killed leader is replaced soon. A running leader renews its Lease seven times in this time. */
const LEASE_DURATION = '5s';

/** The processes that were started and not stopped yet. */
export class RefitProcesses {
  readonly #directory: string;
  readonly #started = new Set<Process>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  async start(name: string, args: readonly string[], environment?: Environment): Promise<Process> {
    const child = await startProcess({
      name,
      command: process.execPath,
      args,
      environment,
      directory: this.#directory,
      ready: () => Promise.resolve(true),
      clock: systemClock,
    });
    this.#started.add(child);
    return child;
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#started].map(async (each) => await each.stop()));
  }
}

export interface RefitCommands {
  /** `name` also names its log file. */
  startController(name: string, args?: readonly string[]): Promise<Process>;
  /** Starts `refit serve` with these arguments. */
  startServer(name: string, args: readonly string[]): Promise<Process>;
  /** Starts any other process of Refit, with a flag for the duration of its Lease. */
  startLeading(name: string, command: string, args: readonly string[]): Promise<Process>;
}

interface CommandOptions {
  /** Flags for Node, and the file of the command. */
  readonly program: readonly string[];
  readonly kubeconfig: () => Promise<string>;
  readonly apiPort: number;
  readonly environment?: Environment;
}

/** Returns functions that each start one long-running command; the caller stops `processes`. */
export function refitCommands(
  processes: RefitProcesses,
  { program, kubeconfig, apiPort, environment }: CommandOptions,
): RefitCommands {
  return {
    async startController(name, args = []) {
      const connection = ['--kubeconfig', await kubeconfig(), '--api-port', String(apiPort)];
      const own = ['--lease-duration', LEASE_DURATION, ...args];
      const command = [...program, 'controller', ...connection, ...own];
      return await processes.start(name, command, environment);
    },
    startServer: async (name, args) => await processes.start(name, [...program, 'serve', ...args]),
    startLeading: async (name, command, args) =>
      await processes.start(name, [
        ...program,
        command,
        ...args,
        '--lease-duration',
        LEASE_DURATION,
      ]),
  };
}
