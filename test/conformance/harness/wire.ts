/**
 * The small HTTP client of this suite. It shows exactly what a server sends, and shares no code with the client of
 * Refit.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';

export interface Credentials {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export interface Outgoing {
  readonly method: string;
  readonly path: string;
  readonly body?: string | undefined;
  readonly contentType?: string | undefined;
  readonly accept?: string | undefined;
}

export interface Answer {
  readonly code: number;
  readonly contentType: string;
  readonly warnings: readonly string[];
  readonly retryAfter: string | undefined;
  /** The parsed body if the body is JSON; otherwise its text. */
  readonly body: unknown;
}

/** The data that a watch has received. `ended` is true after the server has closed the stream. */
export interface Stream {
  readonly code: number;
  readonly lines: unknown[];
  ended: boolean;
  close(): void;
}

export interface Wire {
  readonly name: string;
  send(outgoing: Outgoing): Promise<Answer>;
  stream(path: string, accept?: string): Promise<Stream>;
  close(): void;
}

export function connect(name: string, url: string, credentials?: Credentials): Wire {
  const options = { keepAlive: true, maxSockets: 200 };
  const agent = credentials
    ? new HttpsAgent({ ...options, ...credentials })
    : new HttpAgent(options);
  const open = async ({
    method,
    path,
    body,
    contentType,
    accept,
  }: Outgoing): Promise<IncomingMessage> =>
    await new Promise((resolve, reject) => {
      const headers = {
        accept: accept ?? 'application/json',
        'user-agent': 'conformance',
        // Without the length, Node sends the body of a DELETE as if it were the next request.
        ...(body !== undefined && {
          'content-type': contentType ?? 'application/json',
          'content-length': Buffer.byteLength(body),
        }),
      };
      const request = credentials ? httpsRequest : httpRequest;
      request(`${url}${path}`, { method, headers, agent }, resolve).on('error', reject).end(body);
    });
  return {
    name,
    send: async (outgoing) => await readAnswer(await open(outgoing)),
    stream: async (path, accept) => readStream(await open({ method: 'GET', path, accept })),
    close: () => agent.destroy(),
  };
}

async function readAnswer(response: IncomingMessage): Promise<Answer> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk as string;
  const { 'content-type': contentType = '', warning, 'retry-after': retryAfter } = response.headers;
  return {
    code: response.statusCode ?? 0,
    contentType,
    warnings: warning === undefined ? [] : warning.split(/, (?=299 )/),
    retryAfter,
    body: contentType.startsWith('application/json') ? parse(text) : text,
  };
}

function parse(text: string): unknown {
  return text === '' ? '' : (JSON.parse(text) as unknown);
}

function readStream(response: IncomingMessage): Stream {
  let rest = '';
  const stream: Stream = {
    code: response.statusCode ?? 0,
    lines: [],
    ended: false,
    close: () => response.destroy(),
  };
  response.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    stream.lines.push(...lines.filter((line) => line !== '').map(parse));
  });
  // A broken connection also ends the stream. The data that was received before is compared.
  response
    .on('error', () => response.destroy())
    .on('close', () => {
      stream.ended = true;
    });
  return stream;
}
