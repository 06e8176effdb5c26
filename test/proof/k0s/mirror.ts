/** Serves releases of k0s to the machines, and keeps what each machine downloaded. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { systemClock } from '../../../src/util/clock.ts';
import { OPERATOR } from '../machines/namespaces.ts';
import type { Release } from './options.ts';

const PORT = 8000;

interface Download {
  /** Milliseconds since 1970, when the request came. */
  readonly at: number;
  /** The address of the machine. */
  readonly from: string;
  readonly path: string;
  readonly method: string;
}

export class Mirror implements AsyncDisposable {
  readonly #downloads: Download[] = [];
  readonly #files: Map<string, string>;
  readonly #hashes = new Map<string, string>();
  readonly #server: Server;

  constructor(releases: readonly Release[]) {
    this.#files = new Map(releases.map(({ version, executable }) => [pathOf(version), executable]));
    this.#server = createServer((request, response) => {
      void this.#answer(request, response).catch(() => response.destroy());
    });
  }

  async start(): Promise<void> {
    this.#server.listen(PORT, OPERATOR);
    await once(this.#server, 'listening');
    for (const [path, file] of this.#files) this.#hashes.set(path, await sha256(file));
  }

  /** Serves another file, under a path such as `/crashing/k0s`. */
  async add(path: string, file: string): Promise<void> {
    this.#files.set(path, file);
    this.#hashes.set(path, await sha256(file));
  }

  url(path: string): string {
    return `http://${OPERATOR}:${PORT}${path}`;
  }

  /** The download of a release, as a Plan names it. */
  platform(version: string): { readonly url: string; readonly sha256: string } {
    return { url: this.url(pathOf(version)), sha256: this.sha256(pathOf(version)) };
  }

  /** When the host first asked for the content of the release, in milliseconds since 1970; undefined if it never did. */
  firstDownload(from: string, version: string, since: number): number | undefined {
    return this.#downloads.find(
      (each) =>
        each.at >= since &&
        each.from === from &&
        each.path === pathOf(version) &&
        each.method === 'GET',
    )?.at;
  }

  sha256(path: string): string {
    return this.#hashes.get(path) ?? '';
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = decodeURIComponent(new URL(request.url ?? '/', 'http://mirror').pathname);
    const from = request.socket.remoteAddress ?? '';
    this.#downloads.push({ at: systemClock.now(), from, path, method: request.method ?? '' });
    const file = this.#files.get(path);
    if (file === undefined) {
      response.writeHead(404).end();
      return;
    }
    const { size } = await stat(file);
    const [, first = '0', last = String(size - 1)] =
      /^bytes=(\d+)-(\d+)?$/.exec(request.headers.range ?? '') ?? [];
    const start = Number(first);
    const end = Number(last);
    const isPart = request.headers.range !== undefined;
    response.writeHead(isPart ? 206 : 200, {
      'accept-ranges': 'bytes',
      'content-length': end - start + 1,
      etag: `"${this.sha256(path)}"`,
      ...(isPart ? { 'content-range': `bytes ${start}-${end}/${size}` } : {}),
    });
    if (request.method === 'HEAD') response.end();
    else await pipeline(createReadStream(file, { start, end }), response);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

const pathOf = (version: string): string => `/${version}/k0s`;

async function sha256(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}
