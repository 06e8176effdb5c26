/** What a restart takes on the host itself: how long the service is down, and how long the new one takes to answer. */
import type { Host } from '../../sandbox/hosts/host.ts';
import { type Clock, sleep } from '../../src/util/clock.ts';

/** Milliseconds. */
export interface Restart {
  /** From the end of the service's process to the next start. */
  readonly down: number;
  /** From the start of its process to the first answer on its status socket. */
  readonly start: number;
}

/** What is asked of a host. */
type Watched = Pick<Host, 'name' | 'starts' | 'version'>;

const ASK_EVERY_MS = 10;

export class Restarts {
  readonly #clock: Clock;
  readonly #abort: AbortSignal;
  readonly #downSince = new Map<string, number>();
  readonly #restarts = new Map<string, Restart>();
  #hosts: ReadonlyMap<string, Watched> = new Map();

  /** No host is asked any more once `signal` aborts. */
  constructor(clock: Clock, abort: AbortSignal) {
    this.#clock = clock;
    this.#abort = abort;
  }

  /** What happened before is forgotten: the first start of a service is none that Refit asked for. */
  follow(hosts: readonly Watched[]): void {
    this.#hosts = new Map(hosts.map((host) => [host.name, host]));
  }

  /** To be called at every start and end of a host's service. */
  note(name: string, running: boolean): void {
    const host = this.#hosts.get(name);
    if (host === undefined) return;
    const now = this.#clock.monotonic();
    const since = this.#downSince.get(name);
    if (!running) this.#downSince.set(name, now);
    else if (since !== undefined) void this.#await(host, { down: now - since, startedAt: now });
  }

  /** The last complete restart of a host; undefined where it had none. */
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
