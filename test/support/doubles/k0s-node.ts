/** The double of one machine's k0s: it lives and dies with the process on a stand-in host, and knows nothing from before. */
import { dirname, join } from 'node:path';
import type { Host } from '../../../sandbox/hosts/host.ts';
import { askStatus } from '../../../src/agent/service/status-socket.ts';
import { type Clock, sleep } from '../../../src/util/clock.ts';
import type { Machine } from './agent/parts.ts';
import { K0sProcess, type Role, type Surroundings } from './k0s-process.ts';
import type { Times } from './times.ts';

export interface NodeOptions extends Surroundings {
  readonly host: Host;
  readonly role: Role;
  /** Where a controller's API server is asked. */
  readonly address: string;
}

const LOOK_MS = 5;
/** The original waits for ever. */
const STATUS_TIMEOUT_MS = 10_000;

export class K0sNode {
  readonly #options: NodeOptions;
  readonly #stop = new AbortController();
  /** PIDs that were told to end; every other one that is gone was killed. */
  readonly #terminated = new Set<number>();
  #life: K0sProcess | undefined;
  #following: Promise<void> = Promise.resolve();

  constructor(options: NodeOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.host.name;
  }

  /** True while a process runs and its autopilot is at work. */
  get isAtWork(): boolean {
    return this.#life?.isAtWork ?? false;
  }

  /** True while its process leads, and is at work as that. */
  get leads(): boolean {
    return this.#life?.leads ?? false;
  }

  /** Comes to life as often as the host's process does. */
  start(): void {
    this.#following = this.#follow();
  }

  /** Ends the double in an orderly way; the host stays as it is. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#following;
  }

  /** SIGTERM from outside, as the service manager sends it; the supervisor starts the process again. */
  terminate(): void {
    const { pid } = this.#options.host;
    if (pid === undefined) return;
    this.#terminated.add(pid);
    process.kill(pid, 'SIGTERM');
  }

  /** SIGKILL: nothing is released or cleaned up; the supervisor starts the process again. */
  crash(): void {
    const { pid } = this.#options.host;
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
  }

  async #follow(): Promise<void> {
    const { host, clock } = this.#options;
    const isOver = (): boolean => this.#stop.signal.aborted;
    while (!isOver()) {
      const version = await host.version().catch(() => undefined);
      const { pid } = host;
      if (version === undefined || pid === undefined) {
        await this.#pause(clock);
        continue;
      }
      const life = new K0sProcess({
        ...this.#options,
        name: host.name,
        version,
        machine: this.#machine(version),
      });
      this.#life = life;
      life.start();
      while (host.pid === pid && !isOver()) await this.#pause(clock);
      this.#life = undefined;
      if (isOver() || this.#terminated.has(pid)) await life.terminate();
      else await life.kill();
    }
  }

  #machine(version: string): Machine {
    const { host, role, times, clock } = this.#options;
    const ask = firstSlow(host, role === 'worker' ? times : { firstStatus: 0 }, clock);
    return {
      binaryDirectory: dirname(host.binary),
      imagesDirectory: join(host.dataDirectory, 'images'),
      // The original names no node: the servers of tests tell their callers apart by what stands in brackets.
      userAgent: `k0s/${version} (${host.name})`,
      version: async () => (await ask()).version,
      terminate: async () => {
        const { pid } = await ask();
        this.#terminated.add(pid);
        process.kill(pid, 'SIGTERM');
      },
    };
  }

  async #pause(clock: Clock): Promise<void> {
    await sleep(clock, LOOK_MS, this.#stop.signal).catch(() => undefined);
  }
}

/** A worker's client is only built when it is first used, which takes its while. */
function firstSlow(
  { statusSocket }: Host,
  { firstStatus }: Pick<Times, 'firstStatus'>,
  clock: Clock,
) {
  let built: Promise<void> | undefined;
  return async (): Promise<{ version: string; pid: number }> => {
    built ??= sleep(clock, firstStatus);
    await built;
    return await askStatus(statusSocket, STATUS_TIMEOUT_MS);
  };
}
