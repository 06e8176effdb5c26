/** An API server that knows Leases only, with optimistic concurrency, for elections without a network. */
import type { KubeClient, RequestOptions } from '../../src/kube/client.ts';
import type { Lease } from '../../src/kube/resources.ts';
import { StatusError } from '../../src/kube/status-error.ts';

export class LeaseServer {
  #lease: Lease | undefined;
  #version = 0;
  #anyVersion = false;
  /** Every lease that was written, in order. */
  readonly written: Lease[] = [];

  get lease(): Lease | undefined {
    return this.#lease;
  }

  read(): Lease {
    if (!this.#lease) throw refuse(404, 'NotFound');
    return structuredClone(this.#lease);
  }

  create(lease: Lease): Lease {
    if (this.#lease) throw refuse(409, 'AlreadyExists');
    return this.#write({ ...lease, metadata: { ...lease.metadata, uid: `uid-${this.#version}` } });
  }

  replace(lease: Lease): Lease {
    if (!this.#lease) throw refuse(404, 'NotFound');
    if (
      !this.#anyVersion &&
      lease.metadata.resourceVersion !== this.#lease.metadata.resourceVersion
    )
      throw refuse(409, 'Conflict');
    return this.#write(lease);
  }

  /** Accepts every write from now on, as a server does if the writes contain no preconditions. */
  ignoreVersions(): void {
    this.#anyVersion = true;
  }

  /** Removes the Lease, as an administrator would. */
  remove(): void {
    this.#lease = undefined;
  }

  #write(lease: Lease): Lease {
    const resourceVersion = String(++this.#version);
    this.#lease = structuredClone({ ...lease, metadata: { ...lease.metadata, resourceVersion } });
    this.written.push(this.read());
    return this.read();
  }
}

/**
 * Simulates the connection for one request: runs `apply` when the request arrives at the server, if it arrives, and
 * settles with the result that the client receives.
 */
export type Link = <T>(apply: () => T, options: RequestOptions, mutating: boolean) => Promise<T>;

export function leaseClient(server: LeaseServer, link: Link): KubeClient {
  const client = {
    get: async (_resource: unknown, _name: string, options: RequestOptions = {}) =>
      await link(() => server.read(), options, false),
    create: async (_resource: unknown, lease: Lease, options: RequestOptions = {}) =>
      await link(() => server.create(lease), options, true),
    replace: async (_resource: unknown, lease: Lease, options: RequestOptions = {}) =>
      await link(() => server.replace(lease), options, true),
  };
  return client as unknown as KubeClient;
}

function refuse(code: number, reason: string): StatusError {
  return new StatusError({ kind: 'Status', code, reason, message: reason });
}
