/**
 * Sends a request to a status socket, after a check that only root or the agent's own user can have created the socket.
 */
import { assertTrustedPath } from '../state/trusted-path.ts';
import { readServiceArguments } from './find-services.ts';
import { isSameProcess, type ProcessId } from './host.ts';
import { argumentsOf, findProcess, wasStartedFrom } from './processes.ts';
import { askStatus, type ServiceStatus } from './status-socket.ts';
import { whyForeign } from './trusted-process.ts';

export interface TrustedAnswer extends ServiceStatus {
  readonly process: ProcessId;
  /** True if the command line of a controller does not switch off k0s's own agent. */
  readonly ownAgent?: boolean;
  /** The worker profile with which a worker was started. */
  readonly profile?: string;
}

/**
 * The time limit of a request. On an idle machine the first answer of a worker takes a second, because the service
 * creates a client for it. On a busy machine it takes longer.
 */
export const STATUS_TIMEOUT_MS = 5_000;

/** The profile of a worker whose command line names no profile. */
const DEFAULT_PROFILE = 'default';

/**
 * Returns the answer of the service. Rejects unless the socket and the process are trusted. The process must be a
 * `controller` or `worker`, or it must have been started from `binary`.
 */
export async function askService(
  socket: string,
  timeoutMs: number,
  binary?: string,
): Promise<TrustedAnswer> {
  // Guard socket-path. Only root can have created the socket.
  await assertTrustedPath(socket);
  const status = await askStatus(socket, timeoutMs);
  const { pid } = status;
  const process = findProcess(pid);
  if (process === undefined)
    throw new Error(`there is no process with PID ${pid}, which the status socket names`);
  const distrust = whyForeign(pid);
  // Guard socket-process. The answer names only a process of root.
  if (distrust !== undefined)
    throw new Error(`the status socket names PID ${pid}, which ${distrust}`);
  const args = readServiceArguments(argumentsOf(pid));
  // Guard socket-service. The answer names only the service.
  if (args === undefined && !(binary !== undefined && wasStartedFrom(pid, binary)))
    throw new Error(`the status socket names PID ${pid}, which is another service`);
  // Guard socket-same. The PID is still the process that was examined.
  if (!isSameProcess(findProcess(pid), process))
    throw new Error(`PID ${pid} changed while it was examined`);
  if (args === undefined) return { ...status, process };
  if (!args.isController) return { ...status, process, profile: args.profile ?? DEFAULT_PROFILE };
  return { ...status, process, ownAgent: args.disabled?.includes('autopilot') !== true };
}
