/**
 * The values that every step of a node gets: the object for which it is responsible, the process and the files of the
 * node, and the API.
 */
import type { KubeClient } from '../../../../src/kube/client.ts';
import type { SignalData } from '../../../../src/signal/annotations.ts';
import type { Clock } from '../../../../src/util/clock.ts';
import type { Logger } from '../../../../src/util/log.ts';
import type { Quirks } from '../quirks.ts';
import type { Cache } from '../runtime/manager.ts';
import type { Times } from '../times.ts';

/** The k0s on the machine, as its own autopilot accesses it: through the status socket, and as files. */
export interface Machine {
  /** The directory of the running executable. */
  readonly binaryDirectory: string;
  /** The directory of image bundles. */
  readonly imagesDirectory: string;
  /** Sent with every download. */
  readonly userAgent: string;
  /** Returns the version from the status socket. Rejects if nothing answers. */
  version(): Promise<string>;
  /** Sends SIGTERM to the PID that the status socket reports. */
  terminate(): Promise<void>;
}

/** Keeps the last `Restart` that this process wrote. It is lost when the process ends. */
export class RestartTracker {
  #recorded = '';

  record(signal: SignalData): void {
    this.#recorded = keyOf(signal);
  }

  isPending(signal: SignalData): boolean {
    return this.#recorded === keyOf(signal);
  }
}

function keyOf({ planId, created, status }: SignalData): string {
  return JSON.stringify([planId, created, status?.status, status?.timestamp]);
}

export interface AgentParts {
  /** The name of the object, which is the host name of the machine. */
  readonly name: string;
  readonly machine: Machine;
  readonly quirks: Quirks;
  readonly tracker: RestartTracker;
  readonly client: KubeClient;
  readonly cache: Cache;
  readonly times: Times;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly abort: AbortSignal;
}
