/** Measures a restart on the host itself: how long the service is down, and how long the new process takes to answer. */
import type { Host } from '../../sandbox/hosts/host.ts';
import { type Clock, sleep } from '../../src/util/clock.ts';

/** Milliseconds. */
export interface Restart {
  /** The time from the end of the process of the service to the next start. */
  readonly down: number;
  /** The time from the start of the new process to its first answer on the status socket. */
  readonly start: number;
}

/** The parts of a host that are used here. */
type Watched = Pick<Host, 'name' | 'starts' | 'version'>;

const ASK_EVERY_MS = 10;

export class Restarts {
  readonly #clock: Clock;
  readonly #abort: AbortSignal;
  readonly #downSince = new Map<string, number>();
  readonly #restarts = new Map<string, Restart>();
  #hosts: ReadonlyMap<string, Watched> = new Map();

  /** Creates the records of restarts. It asks no host after `abort` has aborted. */
  constructor(clock: Clock, abort: AbortSignal) {
    this.#clock = clock;
    this.#abort = abort;
  }

  /**
   * Starts to record the restarts of these hosts. Earlier starts do not count, because Refit did not request the first
   * start of a service.
   */
  follow(hosts: readonly Watched[]): void {
    this.#hosts = new Map(hosts.map((host) => [host.name, host]));
  }

  /** The caller must call this function at every start and end of the service of a host. */
  note(name: string, running: boolean): void {
    const host = this.#hosts.get(name);
    if (host === undefined) return;
    const now = this.#clock.monotonic();
    const since = this.#downSince.get(name);
    if (!running) this.#downSince.set(name, now);
    else if (since !== undefined) void this.#await(host, { down: now - since, startedAt: now });
  }

  /** Returns the last complete restart of a host; undefined if the host had no restart. */
  of(name: string): Restart | undefined {
    return this.#restarts.get(name);
  }

  async #await(
    host: Watched,
    { down, startedAt }: { down: number; startedAt: number },
  ): Promise<void> {
    const { starts } = host;
    while (!this.#abort.aborted && host.starts === starts) {
      if (await answers(host)) {
        this.#restarts.set(host.name, { down, start: this.#clock.monotonic() - startedAt });
        return;
      }
      await sleep(this.#clock, ASK_EVERY_MS, this.#abort).catch(() => undefined);
    }
  }
}

async function answers(host: Watched): Promise<boolean> {
  return await host.version().then(
    () => true,
    () => false,
  );
}
