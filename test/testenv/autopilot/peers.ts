/**
 * Opens a second address for each controller's API server, because endpoints must not have loopback addresses. The port
 * is open while the service of the controller runs.
 */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { KubeClient } from '../../../src/kube/client.ts';
import { endpointSlices } from '../../../src/kube/resources.ts';
import { freePort } from '../../../tools/controlplane/ports.ts';

/**
 * Returns an address of this machine that endpoints can have, because the API server refuses endpoints with loopback
 * addresses. Undefined if this machine has only loopback addresses.
 */
export function addressOfMachine(): string | undefined {
  return Object.values(networkInterfaces())
    .flatMap((found) => found ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
}

export class Peers implements AsyncDisposable {
  readonly #address: string;
  readonly #upstream: number;
  readonly #ports = new Map<string, number>();
  readonly #servers = new Map<string, Server>();
  readonly #sockets = new Map<string, Set<Socket>>();

  private constructor(address: string, upstream: number) {
    this.#address = address;
    this.#upstream = upstream;
  }

  static async create(address: string, upstream: number, hosts: readonly string[]): Promise<Peers> {
    const peers = new Peers(address, upstream);
    for (const host of hosts) peers.#ports.set(host, await freePort());
    return peers;
  }

  /** Creates the EndpointSlice that API servers usually maintain. The returned object deletes it. */
  async publish(client: KubeClient): Promise<AsyncDisposable> {
    const name = 'kubernetes';
    const ports = [...this.#ports.values()].map((port, index) => ({
      name: `https-${index}`,
      port,
      protocol: 'TCP',
    }));
    const endpoints = [{ addresses: [this.#address], conditions: { ready: true } }];
    const slice = {
      metadata: { name, namespace: 'default' },
      addressType: 'IPv4',
      endpoints,
      ports,
    };
    await client.create(endpointSlices, slice);
    return {
      [Symbol.asyncDispose]: async () =>
        await client.delete(endpointSlices, name, { namespace: 'default' }),
    };
  }

  /** Call it at every start and end of a host's service. Hosts without an API server are ignored. */
  note(host: string, running: boolean): void {
    const port = this.#ports.get(host);
    if (port === undefined) return;
    if (!running) return this.#close(host);
    const sockets = new Set<Socket>();
    const server = createServer((near) => {
      const far = connect({ port: this.#upstream, host: '127.0.0.1', noDelay: true });
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        sockets.add(one);
        one.on('error', () => other.destroy()).once('close', () => sockets.delete(one));
        one.pipe(other);
      }
    });
    this.#servers.set(host, server.listen(port, this.#address));
    this.#sockets.set(host, sockets);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.resolve();
    for (const host of this.#ports.keys()) this.#close(host);
  }

  #close(host: string): void {
    this.#servers.get(host)?.close();
    for (const socket of this.#sockets.get(host) ?? []) socket.destroy();
  }
}
