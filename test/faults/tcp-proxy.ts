/** Faults of the network: a TCP proxy that delays, stalls, resets, cuts and closes what goes through it. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** The fault that happens to one chunk from the server to the client. */
export type ChunkFault =
  | { readonly kind: 'delay'; readonly ms: number }
  /** Nothing more comes on this connection, which stays open. */
  | { readonly kind: 'stall' }
  /** RST to both sides. */
  | { readonly kind: 'reset' }
  /** Half of the chunk, and RST. */
  | { readonly kind: 'truncate' }
  /** Half of the chunk, the rest after `ms`. */
  | { readonly kind: 'split'; readonly ms: number }
  /** The proxy forwards the chunk and ends the connection in an orderly way, as a server does that shuts down. */
  | { readonly kind: 'close' };

export interface TcpProxyOptions {
  readonly target: { readonly host: string; readonly port: number };
  /** Called for each chunk from the server. If it returns undefined, the proxy forwards the chunk. */
  readonly fault?: (chunk: Buffer) => ChunkFault | undefined;
  readonly host?: string;
}

/** `there`: from the client to the server. `back`: from the server to the client. */
export type Direction = 'there' | 'back';

export interface TcpProxy {
  readonly port: number;
  readonly host: string;
  /** Connections accepted so far. */
  readonly connections: number;
  /**
   * Blocks traffic on all present and future connections, in both directions if `direction` is undefined. `heal` ends
   * the blockade.
   */
  partition(direction?: Direction): void;
  /** Lets traffic flow again. The proxy drops blocked data together with its connection. */
  heal(): void;
  stop(): Promise<void>;
}

export async function startTcpProxy(options: TcpProxyOptions): Promise<TcpProxy> {
  const proxy = new Proxy(options);
  await proxy.listen();
  return proxy;
}

class Proxy implements TcpProxy {
  readonly #options: TcpProxyOptions;
  readonly #pairs = new Set<Pair>();
  readonly #server = createServer({ noDelay: true }, (client) => this.#accept(client));
  #cut: readonly Direction[] = [];
  connections = 0;

  constructor(options: TcpProxyOptions) {
    this.#options = options;
  }

  get host(): string {
    return this.#options.host ?? '127.0.0.1';
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject).listen(0, this.host, resolve);
    });
  }

  partition(direction?: Direction): void {
    this.#cut = direction === undefined ? ['there', 'back'] : [direction];
    for (const pair of this.#pairs) pair.stall(this.#cut);
  }

  heal(): void {
    this.#cut = [];
    for (const pair of this.#pairs) if (pair.stalled.size > 0) pair.reset();
  }

  async stop(): Promise<void> {
    for (const pair of this.#pairs) pair.reset();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
  }

  #accept(client: Socket): void {
    this.connections++;
    const pair = new Pair(
      client,
      connect({ ...this.#options.target, noDelay: true }),
      this.#options.fault,
    );
    this.#pairs.add(pair);
    client.once('close', () => this.#pairs.delete(pair));
    pair.stall(this.#cut);
  }
}

class Pair {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #fault: TcpProxyOptions['fault'];
  #timer: NodeJS.Timeout | undefined;
  readonly stalled = new Set<Direction>();

  constructor(client: Socket, server: Socket, fault: TcpProxyOptions['fault']) {
    this.#client = client;
    this.#server = server;
    this.#fault = fault;
    for (const socket of [client, server]) socket.on('error', () => this.reset());
    client.on('data', (chunk) => this.stalled.has('there') || server.write(chunk));
    client.on('end', () => server.end()).on('close', () => this.#end());
    server.on('data', (chunk: Buffer) => this.#pass(chunk));
    const endClient = (): unknown => this.stalled.has('back') || client.end();
    server.on('end', endClient).on('close', endClient);
  }

  stall(directions: readonly Direction[]): void {
    for (const direction of directions) this.stalled.add(direction);
  }

  reset(): void {
    this.#client.resetAndDestroy();
    this.#server.resetAndDestroy();
  }

  #pass(chunk: Buffer): void {
    if (this.stalled.has('back')) return;
    const fault = this.#fault?.(chunk);
    const half = Math.floor(chunk.length / 2);
    switch (fault?.kind) {
      case undefined:
        this.#client.write(chunk);
        return;
      case 'delay':
        return this.#later(fault.ms, () => this.#client.write(chunk));
      case 'split':
        this.#client.write(chunk.subarray(0, half));
        return this.#later(fault.ms, () => this.#client.write(chunk.subarray(half)));
      case 'truncate':
        this.#client.write(chunk.subarray(0, half), () => this.reset());
        return;
      case 'close':
        this.#client.end(chunk);
        this.#server.destroy();
        return;
      case 'stall':
        return this.stall(['there', 'back']);
      case 'reset':
        return this.reset();
    }
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.#server.destroy();
  }

  /** Pauses the whole connection, so that no later chunk arrives before this one. */
  #later(ms: number, write: () => void): void {
    this.#server.pause();
    this.#timer = setTimeout(() => {
      write();
      this.#server.resume();
    }, ms);
  }
}
