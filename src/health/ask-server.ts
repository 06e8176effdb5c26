/**
 * Sends the requests of health checks and of silences to servers, with credentials from a Secret. Redirects are not
 * followed, so that no other server receives the credentials.
 */
import type { IncomingMessage } from 'node:http';
import { chunksOf, getOnce, statusOf } from '../http/http-get.ts';
import type { Environment } from '../http/proxy-choice.ts';
import type { KubeClient } from '../kube/client.ts';
import { readSecret } from '../kube/read-secret.ts';
import { textIn } from '../util/bounded-file.ts';
import { parseJson } from '../util/json.ts';
import { printableUrl } from '../util/printable-url.ts';
import { formsOfSecret, withoutForms } from '../util/secret-forms.ts';

export interface CheckTools {
  readonly client: KubeClient;
  /** The namespace of the Secrets. */
  readonly namespace: string;
  /** The environment variables that name the proxies. */
  readonly environment: Environment;
}

/** The parts of the Secret of a check that a request needs. */
export interface Access {
  readonly headers: Readonly<Record<string, string>>;
  /** Certificate authorities in PEM. */
  readonly authority?: string | undefined;
  /** Returns the text without the secrets. The message of a server about an error may quote the secrets. */
  readonly hide: (text: string) => string;
}

/** The most bytes of an answer. JSON of this size blocks the process for some milliseconds. */
const MOST_BYTES = 4 * 1024 * 1024;
/** The most characters of the message of a server about an error. */
const LONGEST_ERROR = 160;
/** The characters that the value of a header may have. */
const IN_HEADER = /^[\x20-\x7e]+$/;

/**
 * Reads the Secret. The Secret is read in each round, so that new credentials are used immediately. Rejects if the
 * Secret is not usable for a request.
 */
export async function accessOf(
  secretName: string | undefined,
  { client, namespace }: CheckTools,
  abort: AbortSignal,
): Promise<Access> {
  if (secretName === undefined) return { headers: {}, hide: (text) => text };
  const title = `Secret ${namespace}/${secretName}`;
  const secret = await readSecret({ client, namespace, name: secretName }, abort);
  const read = (key: string): string => secret(key).toString('utf8');
  const token = read('token').trim();
  const authority = read('ca.crt') || undefined;
  const user = read('username');
  const password = read('password');
  if (token === '' && user === '' && authority === undefined)
    throw new Error(`${title} has neither token, nor username and password, nor ca.crt`);
  if (token !== '' && user !== '')
    throw new Error(`${title} has both token and username; only one of them can be sent`);
  if (token !== '' && !IN_HEADER.test(token))
    throw new Error(`the token of ${title} has characters that cannot be sent`);
  const basic = Buffer.from(`${user}:${password}`).toString('base64');
  const headers = authorization(token, user === '' ? '' : basic);
  const hidden = [token, basic, user, password].flatMap(formsOfSecret);
  const forms = hidden.toSorted((a, b) => b.length - a.length);
  const hide = (text: string): string => withoutForms(text, forms);
  return { headers, authority, hide };
}

function authorization(token: string, basic: string): Record<string, string> {
  if (token !== '') return { authorization: `Bearer ${token}` };
  return basic === '' ? {} : { authorization: `Basic ${basic}` };
}

/** The request to a server. If the method is undefined, it is GET. */
export interface ServerRequest {
  readonly url: URL;
  readonly secretName?: string | undefined;
  readonly method?: 'POST' | 'DELETE';
  /** The body as JSON. Used only with POST. */
  readonly body?: string;
}

/**
 * Resolves with the response after its headers have arrived, regardless of its status. The caller must destroy the
 * response.
 */
export async function headOf(
  { url, method, body }: ServerRequest,
  { headers, authority }: Access,
  { environment }: CheckTools,
  abort: AbortSignal,
): Promise<IncomingMessage> {
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  const told = { accept: 'application/json, */*', 'user-agent': 'refit', ...type, ...headers };
  return await getOnce(url, { method, body, headers: told, authority, environment }, abort);
}

/**
 * Resolves with the JSON in the response of the server. Rejects with a message of one sentence if the response is not
 * JSON with status 200.
 */
export async function jsonFrom(
  url: URL,
  secretName: string | undefined,
  tools: CheckTools,
  abort: AbortSignal,
): Promise<unknown> {
  const body = await answerFrom({ url, secretName }, tools, abort);
  if (body === undefined) throw new Error(`${url.host} answered something that is not JSON`);
  return body;
}

/**
 * Resolves with the JSON of a response with status 200; with undefined if its body is not JSON. Rejects with a message
 * of one sentence if the response has another status.
 */
export async function answerFrom(
  request: ServerRequest,
  tools: CheckTools,
  abort: AbortSignal,
): Promise<unknown> {
  const { url, secretName } = request;
  const access = await accessOf(secretName, tools, abort);
  const response = await headOf(request, access, tools, abort);
  try {
    const tooLong = `the answer of ${url.host} is larger than ${MOST_BYTES / 1024 / 1024} MiB; ask for less`;
    const text = await textIn(chunksOf(response), MOST_BYTES, tooLong);
    const body = parseJson(text);
    if (response.statusCode !== 200) {
      const said = access.hide(errorIn(body) ?? '').slice(0, LONGEST_ERROR);
      throw new Error(`${url.host} answered ${statusOf(response)}${said && `: ${said}`}`);
    }
    return body;
  } finally {
    response.destroy();
  }
}

/** Returns the address of a part of the server's API. The URL of the server may have a path and a query. */
export function apiUrl(
  server: string,
  path: string,
  query: readonly (readonly [name: string, value: string])[] = [],
): URL {
  const url = new URL(server);
  url.pathname = `${url.pathname.replace(/\/$/, '')}${path}`;
  for (const [name, value] of query) url.searchParams.append(name, value);
  return url;
}

/** Returns the URL without the parts that may be secret. */
export function shownUrl(url: URL): string {
  return printableUrl(url.href);
}

/** Prometheus reports an error as an object, and Alertmanager reports an error as a text. */
function errorIn(body: unknown): string | undefined {
  if (typeof body === 'string') return body;
  const error: unknown = (body as { readonly error?: unknown } | null | undefined)?.error;
  return typeof error === 'string' ? error : undefined;
}
