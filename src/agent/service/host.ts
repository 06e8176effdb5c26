/** The facts about the host that decisions depend on, as plain JSON. */

/** Identifies one process for good: the system reuses PIDs. */
export interface ProcessId {
  readonly pid: number;
  /** Boot id and start time: equal only for the same process. */
  readonly started: string;
  /** PID of the supervisor that starts the service. */
  readonly parent: number;
}

export interface RunningService {
  /** From the status socket, such as `v1.36.3+k0s.2`. */
  readonly version: string;
  readonly process: ProcessId;
  /** True when the process executes the file that is at the binary's path now. */
  readonly current: boolean;
}

export interface ServiceFacts {
  /** Undefined while the status socket does not answer. */
  readonly running?: RunningService;
  readonly problem?: string;
  /** Why a path of the service is not trusted, and how to fix it: set beside `problem` when waiting does not help. */
  readonly distrust?: string;
  /** The service's living process: from the socket, else from the process table. */
  readonly service?: ProcessId;
  /** Absolute path of the service's binary; undefined when it cannot be found out. */
  readonly binary?: string;
  /** True when k0s was started with its own agent; absent when that is not known. */
  readonly ownAgent?: boolean;
  /** Why that is not known of a k0s that answers, and how to find it out. */
  readonly ownAgentDoubt?: string;
  /** At least so many processes of the service have ended since its last restart. */
  readonly exits?: number;
  /** Since when a restarted service does not answer; absent while it does. */
  readonly unansweredMs?: number;
}

export function isSameProcess(a: ProcessId | undefined, b: ProcessId | undefined): boolean {
  return a !== undefined && a.pid === b?.pid && a.started === b.started;
}
