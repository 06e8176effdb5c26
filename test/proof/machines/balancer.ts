/**
 * Serves the address that all control planes share. It is a TCP load balancer that probes whether each API server is
 * ready.
 */

import { get } from 'node:https';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { systemClock } from '../../../src/util/clock.ts';

const PROBE_MS = 1000;

export interface BalancerPorts {
  readonly own: number;
  readonly backend: number;
  /** The port of `/readyz`, if it is not the port of the backend. */
  readonly probe?: number;
}

export class Balancer implements AsyncDisposable {
  readonly #backends: readonly string[];
  readonly #ports: BalancerPorts;
  readonly #localAddress: string;
  readonly #ready = new Set<string>();
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #next = 0;
  #cancel: () => void = () => undefined;

  /** Makes a load balancer. It connects to the backends from `localAddress`. */
  constructor(backends: readonly string[], ports: BalancerPorts, localAddress: string) {
    this.#backends = backends;
    this.#ports = ports;
    this.#localAddress = localAddress;
    this.#server = createServer((client) => this.#forward(client));
  }

  async start(address: string): Promise<void> {
    this.#server.listen(this.#ports.own, address);
    await new Promise((resolve) => this.#server.once('listening', resolve));
    await this.#probe();
  }

  async #probe(): Promise<void> {
    await Promise.all(
      this.#backends.map(async (backend) => {
        if (
          await isReady({
            host: backend,
            port: this.#ports.probe ?? this.#ports.backend,
            localAddress: this.#localAddress,
          })
        )
          this.#ready.add(backend);
        else this.#ready.delete(backend);
      }),
    );
    this.#cancel = systemClock.schedule(PROBE_MS, () => void this.#probe());
  }

  #forward(client: Socket): void {
    const ready = [...this.#ready];
    const backend = ready[this.#next++ % Math.max(1, ready.length)];
    // `kubeadm init` connects to its own API server before that server is ready.
    const host = backend ?? this.#backends[0] ?? '';
    const server = connect({ host, port: this.#ports.backend, localAddress: this.#localAddress });
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from);
      from.on('error', () => to.destroy());
      from.on('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#cancel();
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

async function isReady(at: { host: string; port: number; localAddress: string }): Promise<boolean> {
  return await new Promise((resolve) => {
    const options = { ...at, path: '/readyz', rejectUnauthorized: false, timeout: 2000 };
    const request = get(options, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(false));
  });
}
