/** Defines the facts about the host that decisions depend on, as plain JSON. */

/** Identifies one process permanently. A PID alone does not, because the system reuses PIDs. */
export interface ProcessId {
  readonly pid: number;
  /** The boot id and the start time. They are equal only for the same process. */
  readonly started: string;
  /** The PID of the supervisor that starts the service. */
  readonly parent: number;
}

export interface RunningService {
  /** The version from the status socket, such as `v1.36.3+k0s.2`. */
  readonly version: string;
  readonly process: ProcessId;
  /** True if the process runs the file that is at the binary's path now. */
  readonly current: boolean;
}

export interface ServiceFacts {
  /** The service that answers on the status socket; undefined while no service answers. */
  readonly running?: RunningService;
  readonly problem?: string;
  /**
   * Says why a path of the service is not trusted, and how to fix that. It is set together with `problem` if waiting
   * does not help.
   */
  readonly distrust?: string;
  /**
   * The running process of the service. It comes from the status socket, or from the process table if the socket does
   * not answer.
   */
  readonly service?: ProcessId;
  /** The absolute path of the service's binary; undefined if it cannot be found. */
  readonly binary?: string;
  /** True if k0s was started with its own agent; absent if that is not known. */
  readonly ownAgent?: boolean;
  /** Set if a k0s that answers does not show whether it runs its own agent. Says the reason, and what to do. */
  readonly ownAgentDoubt?: string;
  /**
   * The number of processes of the service that have ended since its last restart. The real number may be higher,
   * because the agent does not observe every process.
   */
  readonly exits?: number;
  /** Milliseconds for which the restarted service has not answered; absent while it answers. */
  readonly unansweredMs?: number;
}

/** Returns true if both are the same process; false if one of them is undefined. */
export function isSameProcess(a: ProcessId | undefined, b: ProcessId | undefined): boolean {
  return a !== undefined && a.pid === b?.pid && a.started === b.started;
}
