/** Calls hooks as Cluster API's managers do: HTTPS, no content type, the timeout in the query. */
import { connect, type IncomingHttpHeaders } from 'node:http2';
import { request } from 'node:https';
import { HOOK_GROUP, type HookName, type HookResponse } from '../../src/api/capi/hooks.ts';
import { HANDLERS } from '../../src/dialects/capi/hooks/routes.ts';
import { fitting } from './hook-schema.ts';

export type Protocol = 'h2' | 'http/1.1';

export interface CallerOptions {
  readonly url: string;
  /** The certificate of the authority that issued the server's certificate, in PEM. */
  readonly authority: string;
  readonly protocol: Protocol;
  /** The certificate and key of the client in PEM, if the server requires them. */
  readonly client?: { readonly certificate: string; readonly key: string };
}

export interface Answered {
  readonly status: number;
  readonly body: string;
}

/**
 * Calls a hook. Throws if the status is not 200, as a manager does. Also throws if the body or the answer does not fit
 * the schema of the hooks.
 *
 * @param body without apiVersion and kind
 */
export async function callHook<T extends HookResponse>(
  options: CallerOptions,
  hook: HookName,
  body: object,
  timeout = '10s',
): Promise<T> {
  const text = JSON.stringify({ apiVersion: HOOK_GROUP, kind: `${hook}Request`, ...body });
  fitting(`${hook}Request`, JSON.parse(text));
  const { status, body: answer } = await post(options, `${pathOf(hook)}?timeout=${timeout}`, text);
  if (status !== 200) throw new Error(`${hook} answers ${status}: ${answer.slice(0, 512)}`);
  return fitting(`${hook}Response`, JSON.parse(answer) as T);
}

function pathOf(hook: HookName): string {
  const handler = HANDLERS.find((each) => each.hook === hook);
  return `/${HOOK_GROUP}/${hook.toLowerCase()}${handler === undefined ? '' : `/${handler.name}`}`;
}

export async function post(
  options: CallerOptions,
  path: string,
  body: string,
  method = 'POST',
): Promise<Answered> {
  const version = options.protocol === 'h2' ? '2.0' : '1.1';
  const headers = {
    'content-length': String(Buffer.byteLength(body)),
    'accept-encoding': 'gzip',
    'user-agent': `Go-http-client/${version}`,
  };
  return options.protocol === 'h2'
    ? await overHttp2(options, path, method, headers, body)
    : await overHttp1(options, path, method, headers, body);
}

type Headers = Readonly<Record<string, string>>;

async function overHttp1(
  options: CallerOptions,
  path: string,
  method: string,
  headers: Headers,
  body: string,
) {
  const { authority: ca, client } = options;
  const tls = {
    ca,
    agent: false,
    ...(client ? { cert: client.certificate, key: client.key } : {}),
  };
  return await new Promise<Answered>((resolve, reject) => {
    // The path is used unchanged. A URL object would normalize it.
    const { hostname, port } = new URL(options.url);
    const outgoing = request({ hostname, port, path, method, headers, ...tls }, (response) => {
      response.setEncoding('utf8').once('error', reject);
      let text = '';
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.once('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
    });
    outgoing.once('error', reject).end(body);
  });
}

async function overHttp2(
  options: CallerOptions,
  path: string,
  method: string,
  headers: Headers,
  body: string,
) {
  const { authority: ca, client, url } = options;
  const session = connect(url, {
    ca,
    ...(client ? { cert: client.certificate, key: client.key } : {}),
  });
  try {
    return await new Promise<Answered>((resolve, reject) => {
      session.once('error', reject);
      session.once('close', () => reject(new Error('the connection was closed')));
      const stream = session.request(
        { ':method': method, ':path': path, ...headers },
        { endStream: false },
      );
      let status = 0;
      let text = '';
      stream.setEncoding('utf8').once('error', reject);
      stream.once('response', (answer: IncomingHttpHeaders & { ':status'?: number }) => {
        status = answer[':status'] ?? 0;
      });
      stream.on('data', (chunk: string) => {
        text += chunk;
      });
      stream.once('end', () => resolve({ status, body: text }));
      stream.end(body);
    });
  } finally {
    session.destroy();
  }
}
