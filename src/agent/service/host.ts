/** Owns what the agent may know about its host: the facts that the step table decides on, as plain JSON. */

/** One process for good: a PID alone is used again by the system. */
export interface ProcessId {
  readonly pid: number;
  /** Boot and start time within it, equal only for the same process. */
  readonly started: string;
  /** PID of the supervisor that starts the service. */
  readonly parent: number;
}

export interface RunningService {
  /** As the status socket says it, such as `v1.36.3+k0s.2`. */
  readonly version: string;
  readonly process: ProcessId;
  /** True where the process executes the very file that now is at the path of the binary. */
  readonly current: boolean;
}

export interface HostFacts {
  /** Undefined while the status socket does not answer. */
  readonly running?: RunningService;
  /** Why there is no `running`, for people. */
  readonly problem?: string;
  /** The service's process where one lives: the socket's, else one that was found in the process table. */
  readonly service?: ProcessId;
  /** Absolute path of the service's binary; undefined where nothing tells it. */
  readonly binary?: string;
  /** How many processes of the service were seen to end since its last restart: the least, as a quick one is missed. */
  readonly exits?: number;
}

export function isSameProcess(a: ProcessId | undefined, b: ProcessId | undefined): boolean {
  return a !== undefined && a.pid === b?.pid && a.started === b.started;
}
