/**
 * A proxy between the managers and the extension. It uses the extension's certificate, and forwards and records every
 * message.
 */
import { readFile } from 'node:fs/promises';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type Answered, type CallerOptions, post } from '../../../sandbox/cluster/hook-caller.ts';
import { schemaProblems } from '../../../sandbox/cluster/hook-schema.ts';
import { listen } from '../../../src/util/listen.ts';
import type { Scene } from './scene.ts';

interface Message {
  readonly kind: string;
  readonly body: unknown;
}

type Spoil = (kind: string, real: Answered) => Answered | undefined;

export class Middleman implements AsyncDisposable {
  readonly url: string;
  readonly heard: readonly Message[];
  readonly #close: () => Promise<void>;

  private constructor(url: string, heard: readonly Message[], close: () => Promise<void>) {
    this.url = url;
    this.heard = heard;
    this.#close = close;
  }

  /** Starts a proxy, by default in front of the extension. `spoil` may replace an answer by another answer. */
  static async start(
    { extension, options: { directory } }: Scene,
    {
      url = extension.url,
      spoil = (): undefined => undefined,
    }: { url?: string; spoil?: Spoil } = {},
  ): Promise<Middleman> {
    const [cert, key, ca] = await Promise.all(
      ['tls.crt', 'tls.key', 'ca.crt'].map(
        async (file) => await readFile(join(directory, 'hooks', file), 'utf8'),
      ),
    );
    const { authority, client } = extension;
    // The example updater supports only HTTP/1.1.
    const protocol = url === extension.url ? 'h2' : 'http/1.1';
    const caller: CallerOptions = { url, authority, client, protocol };
    const heard: Message[] = [];
    const mutual = { requestCert: true, rejectUnauthorized: true };
    const server = createSecureServer(
      { allowHTTP1: true, cert, key, ca, ...mutual },
      (request, response) => {
        pass({ caller, heard, spoil }, request, response).catch(() =>
          response.writeHead(502).end(),
        );
      },
    );
    const { port }: AddressInfo = await listen(server, '127.0.0.1:0');
    const close = async (): Promise<void> =>
      await new Promise((resolve) => server.close(() => resolve()));
    return new Middleman(`https://127.0.0.1:${port}`, heard, close);
  }

  /** How many messages of each kind there were. */
  counts(): Record<string, number> {
    const kinds = Object.groupBy(this.heard, ({ kind }) => kind);
    return Object.fromEntries(
      Object.entries(kinds).map(([kind, messages = []]) => [kind, messages.length]),
    );
  }

  problems(): string[] {
    return this.heard.flatMap(({ kind, body }) => schemaProblems(kind, body));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }
}

async function pass(
  { caller, heard, spoil }: { caller: CallerOptions; heard: Message[]; spoil: Spoil },
  request: Http2ServerRequest,
  response: Http2ServerResponse,
): Promise<void> {
  const given = await text(request);
  const asked = JSON.parse(given) as { readonly kind: string };
  heard.push({ kind: asked.kind, body: asked });
  const real = await post(caller, request.url, given);
  const { status, body } = spoil(asked.kind, real) ?? real;
  if (status === 200)
    heard.push({ kind: asked.kind.replace('Request', 'Response'), body: JSON.parse(body) });
  response.writeHead(status, { 'content-type': 'application/json' }).end(body);
}
