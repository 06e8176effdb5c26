/** Serves one payload as a simple web server does: the whole payload, or the part from a given byte, with an ETag. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface PayloadServer extends AsyncDisposable {
  readonly url: string;
  /** The first byte that each request asked for, in order. */
  readonly from: readonly number[];
}

export async function servePayload(payload: Buffer): Promise<PayloadServer> {
  const asked: number[] = [];
  const server = createServer((request, response) => {
    response.setHeader('etag', '"payload"');
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
    asked.push(from);
    if (from >= payload.length) {
      response.writeHead(416, { 'content-range': `bytes */${payload.length}` }).end();
      return;
    }
    const rest = payload.subarray(from);
    const part = { 'content-range': `bytes ${from}-${payload.length - 1}/${payload.length}` };
    response
      .writeHead(from > 0 ? 206 : 200, { 'content-length': rest.length, ...(from > 0 ? part : {}) })
      .end(rest);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/k0s`,
    from: asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
    },
  };
}
