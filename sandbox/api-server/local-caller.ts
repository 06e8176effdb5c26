/** Calls the server from its own process, without a socket. */
import { type Call, type Caller, queryText } from '../../src/kube/client.ts';
import type { Status } from '../../src/kube/resources.ts';
import { StatusError } from '../../src/kube/status-error.ts';
import { onAbort } from '../../src/util/waits.ts';
import { respond, type Service } from './answer.ts';
import { type ApiRequest, parseTarget } from './request.ts';
import type { Sink } from './sink.ts';

/**
 * Returns a caller for thousands of clients, because a process cannot have so many sockets. It passes JSON text, as a
 * connection does.
 */
export function localCaller(service: Service): Caller {
  const ask = (call: Call): Exchange => {
    const exchange = new Exchange();
    respond(service, requestOf(call), exchange);
    return exchange;
  };
  return {
    // The answer is asynchronous, as over a connection: it never comes before the call returns.
    async text(call) {
      await Promise.resolve();
      const { statusCode, body } = ask(call);
      return { status: statusCode, body };
    },
    async json<T>(call: Call) {
      await Promise.resolve();
      return contentOf(ask(call)) as T;
    },
    async *stream<T>(call: Call) {
      await Promise.resolve();
      const exchange = ask(call);
      using things = new DisposableStack();
      things.defer(() => exchange.destroy());
      things.use(onAbort(call.abort, () => exchange.destroy()));
      if (exchange.statusCode >= 400) contentOf(exchange);
      for await (const line of exchange) yield JSON.parse(line) as T;
    },
    close: () => undefined,
  };
}

function requestOf({
  method,
  path,
  query = {},
  contentType = 'application/json',
  body,
}: Call): ApiRequest {
  return {
    method,
    path,
    target: parseTarget(path),
    query: new URLSearchParams(queryText(query)),
    contentType: body === undefined ? '' : contentType,
    accept: 'application/json',
    userAgent: 'local',
    body: body === undefined ? '' : JSON.stringify(body),
    warnings: [],
  };
}

function contentOf({ statusCode, body }: Exchange): unknown {
  if (statusCode < 400) return JSON.parse(body) as unknown;
  // Paths of kinds that nobody serves get plain text.
  const plain: Status = {
    kind: 'Status',
    code: statusCode,
    reason: statusCode === 404 ? 'NotFound' : '',
    message: body,
  };
  throw new StatusError(body.startsWith('{') ? (JSON.parse(body) as Status) : plain);
}

/** Receives one answer, or the lines of a watch when the server writes them. */
class Exchange implements Sink, AsyncIterable<string> {
  statusCode = 200;
  headersSent = false;
  destroyed = false;
  body = '';
  readonly writableLength = 0;
  #lines: string[] = [];
  #onClose: (() => void) | undefined;
  #wake = (): void => undefined;

  get writableEnded(): boolean {
    return this.destroyed;
  }

  setHeader(): void {}

  flushHeaders(): void {}

  writeHead(code: number): void {
    this.statusCode = code;
    this.headersSent = true;
  }

  write(chunk: string | Buffer): void {
    this.#lines.push(chunk.toString());
    this.#wake();
  }

  end(body = ''): void {
    this.body = body;
    this.destroy();
  }

  destroy(): void {
    this.destroyed = true;
    this.#onClose?.();
    this.#onClose = undefined;
    this.#wake();
  }

  once(_event: 'close', listener: () => void): void {
    this.#onClose = listener;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    for (;;) {
      yield* this.#lines.splice(0);
      if (this.destroyed && this.#lines.length === 0) return;
      if (this.#lines.length > 0) continue;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
