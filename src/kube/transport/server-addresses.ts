/** The addresses at which a cluster's API servers answer: the configured one first, then what was learned. */
import type { Clock } from '../../util/clock.ts';

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

/** Milliseconds during which an address that failed comes last: an API server needs about that long to restart. */
const AVOID_MS = 10_000;
/** More than any control plane has. */
const MOST = 16;

export class ServerAddresses {
  readonly #clock: Clock;
  readonly #own: ServerAddress;
  readonly #failedAt = new Map<string, number>();
  #peers: readonly ServerAddress[] = [];

  constructor(own: ServerAddress, clock: Clock) {
    this.#own = own;
    this.#clock = clock;
  }

  get count(): number {
    return this.#all().length;
  }

  /** The first that did not fail lately, or the one whose failure is the oldest. */
  next(): ServerAddress {
    const before = this.#clock.monotonic() - AVOID_MS;
    const failedAt = (address: ServerAddress): number => this.#failedAt.get(keyOf(address)) ?? -Infinity;
    const all = this.#all();
    const good = all.find((address) => failedAt(address) < before);
    return good ?? all.reduce((oldest, each) => (failedAt(each) < failedAt(oldest) ? each : oldest));
  }

  failed(address: ServerAddress): void {
    this.#failedAt.set(keyOf(address), this.#clock.monotonic());
  }

  /** Those that are missing in `peers` stay, behind the others: an API server that restarts is missing for a while. */
  learn(peers: readonly ServerAddress[]): void {
    const all = new Map([...peers, ...this.#peers].map((address) => [keyOf(address), address]));
    all.delete(keyOf(this.#own));
    this.#peers = [...all.values()].slice(0, MOST);
    const kept = new Set(this.#all().map(keyOf));
    for (const key of this.#failedAt.keys()) if (!kept.has(key)) this.#failedAt.delete(key);
  }

  #all(): readonly ServerAddress[] {
    return [this.#own, ...this.#peers];
  }
}

function keyOf({ host, port }: ServerAddress): string {
  return `${host} ${port}`;
}
