/**
 * The double of the k0s of one machine. It starts and ends with the process on a stand-in host, and keeps no data of an
 * earlier process.
 */
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
  /** The address of the API server on a controller. */
  readonly address: string;
}

const LOOK_MS = 5;
/** The limit for an answer of the status socket, in milliseconds. The original waits without a limit. */
const STATUS_TIMEOUT_MS = 10_000;

export class K0sNode {
  readonly #options: NodeOptions;
  readonly #stop = new AbortController();
  /** The PIDs of the processes that received SIGTERM. Every other process that has ended counts as killed. */
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

  /** True while its process leads and the controllers of the leader are running. */
  get leads(): boolean {
    return this.#life?.leads ?? false;
  }

  /** Starts the double. From then on, it starts again each time that the process of the host starts. */
  start(): void {
    this.#following = this.#follow();
  }

  /** Stops the double in an orderly way. The host does not change. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#following;
  }

  /** Sends SIGTERM from outside, as the service manager does. The supervisor starts the process again. */
  terminate(): void {
    const { pid } = this.#options.host;
    if (pid === undefined) return;
    this.#terminated.add(pid);
    process.kill(pid, 'SIGTERM');
  }

  /** Sends SIGKILL. The process releases nothing and cleans up nothing. The supervisor starts the process again. */
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
      // The user agent of the original contains no name of a node. The servers of tests identify their callers by the
      // name in brackets.
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

/**
 * Delays the first request to the status socket. A worker builds its client only for the first request, and that takes
 * some time.
 */
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
