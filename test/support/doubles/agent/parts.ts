/** What every step of a node is given: which object it answers for, where the node's process and files are, and the API. */
import type { KubeClient } from '../../../../src/kube/client.ts';
import type { SignalData } from '../../../../src/signal/annotations.ts';
import type { Clock } from '../../../../src/util/clock.ts';
import type { Logger } from '../../../../src/util/log.ts';
import type { Quirks } from '../quirks.ts';
import type { Cache } from '../runtime/manager.ts';
import type { Times } from '../times.ts';

/** The k0s that runs on the machine, as its own autopilot sees it: through the status socket, and as files. */
export interface Machine {
  /** Of the running executable. */
  readonly binaryDirectory: string;
  /** Where bundles of images go. */
  readonly imagesDirectory: string;
  /** Sent with every download. */
  readonly userAgent: string;
  /** Asks the status socket; rejects where nothing answers. */
  version(): Promise<string>;
  /** SIGTERM to the PID that the status socket tells. */
  terminate(): Promise<void>;
}

/** The last `Restart` that this very process wrote; gone with the process. */
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
  /** Of the object: the machine's host name. */
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
