/** An update server with a log of its requests. A test changes its channels while controllers follow them. */
import type { Cluster } from '../../sandbox/cluster/cluster.ts';
import { payloadPath } from '../../sandbox/cluster/served-versions.ts';
import { type StubServer, startStubServer } from '../faults/stub-server.ts';

export class UpdateServer implements AsyncDisposable {
  readonly #server: StubServer;
  readonly #indexes: Map<string, string>;

  private constructor(server: StubServer, indexes: Map<string, string>) {
    this.#server = server;
    this.#indexes = indexes;
  }

  static async start(): Promise<UpdateServer> {
    const indexes = new Map<string, string>();
    const server = await startStubServer(({ url }, response) => {
      const index = indexes.get(url.split('?')[0] ?? '');
      response.writeHead(index === undefined ? 404 : 200).end(index ?? '');
    });
    return new UpdateServer(server, indexes);
  }

  get url(): string {
    return this.#server.config.server;
  }

  get asked(): StubServer['requests'] {
    return this.#server.requests;
  }

  /** Offers a version as the public server does, at `/<channel>/index.yaml`. */
  offer(
    channel: string,
    version: string,
    { downloads }: Cluster,
    more: Record<string, unknown> = {},
  ): void {
    const path = payloadPath(version);
    const file = {
      os: 'linux',
      arch: 'amd64',
      k0s: downloads.url + path,
      k0sSha256: downloads.sha256(path),
    };
    this.#indexes.set(
      `/${channel}/index.yaml`,
      JSON.stringify({ channel, version, downloadURLs: [file], ...more }),
    );
  }

  /** Offers a version as a server for the strategy cron does, at `/<channel>` and without hashes. */
  offerWithoutHash(channel: string, version: string, { downloads }: Cluster): void {
    const k0s = { 'linux-amd64': downloads.url + payloadPath(version) };
    this.#indexes.set(
      `/${channel}`,
      JSON.stringify({ version, downloadURLs: { k0s, airgap: {} } }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}
