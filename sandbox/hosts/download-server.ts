/** A download server: files over HTTP with ranges, a log of downloads, and faults on request. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A fault of the server. For a request, the server uses the first fault that matches and has not been used up. */
export interface Fault {
  /** The fault applies only to this node; to every node if absent. */
  readonly node?: string;
  /** The fault applies only to this path; to every path if absent. */
  readonly path?: string;
  /** The number of requests to which the fault applies; 1 if absent. */
  readonly times?: number;
  /** Answers with this status and nothing else. */
  readonly status?: number;
  /** Cuts the connection after this number of bytes of the body. */
  readonly resetAfterBytes?: number;
  /** Sends nothing after this number of bytes of the body, but keeps the connection. */
  readonly stallAfterBytes?: number;
  /** The file is sent in 64 pieces, with this many milliseconds between two pieces. */
  readonly paceMs?: number;
}

export interface DownloadServerOptions {
  /** Maps the path of a URL, such as `/k0s`, to a file. */
  readonly files: Readonly<Record<string, string>>;
  /** Nodes that get a file of the right size with damaged bytes. */
  readonly breakFor?: readonly string[];
  /** Called for each request of a node in `breakFor`. Returns false after somebody has repaired the file. */
  readonly isStillBroken?: ((node: string) => boolean) | undefined;
  readonly faults?: readonly Fault[];
}

export interface ServedRequest {
  /** The name of the node that sent the request, as its agent reports it. */
  readonly node: string;
  readonly path: string;
  /** The index of the first byte that was sent; 0 for a whole file. */
  readonly from: number;
  status: number;
  bytesSent: number;
  /** True if the last byte of the file was sent. */
  complete: boolean;
  /** Milliseconds from the request to the last byte that was sent. */
  ms: number;
}

export interface DownloadServer {
  /** The URL of the server, such as `http://127.0.0.1:41234`. */
  readonly url: string;
  readonly requests: readonly ServedRequest[];
  /**
   * The HEAD requests: the name of the node and the path. A node asks in this way whether a file exists. These requests
   * are no downloads.
   */
  readonly heads: readonly (readonly [node: string, path: string])[];
  /** Returns the sha256 of the undamaged file, in lower-case hexadecimal digits. */
  sha256(path: string): string;
  stop(): Promise<void>;
}

interface Payload {
  readonly bytes: Buffer;
  readonly sha256: string;
}

const PIECES = 64;

export async function startDownloadServer(options: DownloadServerOptions): Promise<DownloadServer> {
  const payloads = new Map<string, Payload>();
  for (const [path, file] of Object.entries(options.files)) {
    const bytes = await readFile(file);
    payloads.set(path, { bytes, sha256: createHash('sha256').update(bytes).digest('hex') });
  }
  const requests: ServedRequest[] = [];
  const heads: [string, string][] = [];
  const faults = (options.faults ?? []).map((fault) => ({ fault, left: fault.times ?? 1 }));
  const takeFault = (node: string, path: string): Fault => {
    const next = faults.find(
      ({ fault, left }) =>
        left > 0 && (fault.node ?? node) === node && (fault.path ?? path) === path,
    );
    if (next === undefined) return {};
    next.left--;
    return next.fault;
  };
  const server = createServer((request, response) => {
    // A `+` in a version may be encoded as %2B.
    const pathname = decodeURIComponent(new URL(request.url ?? '/', 'http://localhost').pathname);
    const node = /\(([^)]*)\)/.exec(request.headers['user-agent'] ?? '')?.[1] ?? '';
    const payload = payloads.get(pathname);
    if (payload !== undefined && request.headers['if-none-match'] === `"${payload.sha256}"`) {
      requests.push({
        node,
        path: pathname,
        from: 0,
        status: 304,
        bytesSent: 0,
        complete: false,
        ms: 0,
      });
      response.writeHead(304).end();
      return;
    }
    if (request.method === 'HEAD') {
      heads.push([node, pathname]);
      response
        .writeHead(payload === undefined ? 404 : 200, {
          'content-length': payload?.bytes.length ?? 0,
        })
        .end();
      return;
    }
    const from = payload === undefined ? 0 : firstByte(request, payload);
    const served = { node, path: pathname, from, status: 0, bytesSent: 0, complete: false, ms: 0 };
    requests.push(served);
    const isBroken =
      options.breakFor?.includes(node) === true && options.isStillBroken?.(node) !== false;
    void answer(response, served, isBroken ? damaged(payload) : payload, takeFault(node, pathname));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    heads,
    sha256: (path) => payloads.get(path)?.sha256 ?? '',
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/**
 * Returns the first byte to send. By RFC 9110, the server ignores the range if If-Range does not name the current file.
 */
function firstByte({ headers }: IncomingMessage, { sha256 }: Payload): number {
  if (headers['if-range'] !== undefined && headers['if-range'] !== `"${sha256}"`) return 0;
  return Number(/^bytes=(\d+)-$/.exec(headers.range ?? '')?.[1] ?? 0);
}

async function answer(
  response: ServerResponse,
  served: ServedRequest,
  payload: Payload | undefined,
  fault: Fault,
): Promise<void> {
  const size = payload?.bytes.length ?? 0;
  served.status = fault.status ?? (payload === undefined ? 404 : statusFor(served.from, size));
  if (payload === undefined || served.status >= 400) {
    response.writeHead(served.status, { 'content-range': `bytes */${size}` }).end();
    return;
  }
  response.writeHead(served.status, {
    'content-length': size - served.from,
    etag: `"${payload.sha256}"`,
    ...(served.from > 0 && { 'content-range': `bytes ${served.from}-${size - 1}/${size}` }),
  });
  await sendBody(response, served, payload.bytes, fault);
}

function statusFor(from: number, size: number): number {
  if (from === 0) return 200;
  return from < size ? 206 : 416;
}

async function sendBody(
  response: ServerResponse,
  served: ServedRequest,
  bytes: Buffer,
  fault: Fault,
): Promise<void> {
  const startedAt = performance.now();
  const end = Math.min(
    bytes.length,
    served.from + (fault.resetAfterBytes ?? fault.stallAfterBytes ?? bytes.length),
  );
  const piece = fault.paceMs === undefined ? bytes.length : Math.ceil(bytes.length / PIECES);
  for (let at = served.from; at < end && !response.destroyed; at += piece) {
    const chunk = bytes.subarray(at, Math.min(end, at + piece));
    await new Promise((resolve) => response.write(chunk, resolve));
    served.bytesSent += chunk.length;
    served.ms = performance.now() - startedAt;
    served.complete = served.from + served.bytesSent === bytes.length;
    if (fault.paceMs !== undefined)
      await new Promise((resolve) => setTimeout(resolve, fault.paceMs));
  }
  if (fault.resetAfterBytes !== undefined) response.destroy();
  else if (fault.stallAfterBytes === undefined) response.end();
}

/** Returns the payload with one bit changed in the middle. A bad disk or a faulty proxy can cause that. */
function damaged(payload: Payload | undefined): Payload | undefined {
  if (payload === undefined) return undefined;
  const bytes = Buffer.from(payload.bytes);
  const middle = bytes.length >> 1;
  bytes[middle] = (bytes[middle] ?? 0) ^ 1;
  return { ...payload, bytes };
}
