/** Sends one GET or HEAD request: directly, or through a proxy, with a tunnel for https. */
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import * as https from 'node:https';
import { isIP, type Socket } from 'node:net';
import { connect, getCACertificates, type TlsOptions } from 'node:tls';
import { http } from '../util/http.ts';
import { basicAuthorization } from '../util/printable-url.ts';
import { withoutBrackets } from './proxy-choice.ts';

export interface Route {
  readonly address: URL;
  readonly headers: OutgoingHttpHeaders;
  /** GET if absent. */
  readonly method?: 'HEAD' | undefined;
  readonly proxy: URL | undefined;
}

/** The proxy answered with an error instead of opening a tunnel. */
export class ProxyRefusal extends Error {
  override readonly name = 'ProxyRefusal';
  readonly status: number;

  constructor(status: number) {
    super(`the proxy answered ${status}`);
    this.status = status;
  }
}

/** Resolves with the head of the answer; rejects like `node:http`, or with a ProxyRefusal. */
export async function get(
  { address, headers, method, proxy }: Route,
  abort: AbortSignal,
): Promise<IncomingMessage> {
  const asked = { headers, method, signal: abort };
  if (proxy === undefined)
    return await answered(
      requesterFor(address)(address, { ...asked, agent: false, ...trustFor(address) }),
    );
  if (address.protocol === 'http:')
    return await throughProxy(proxy, { address, headers, method }, abort);
  // Node's own proxy support cannot be aborted meanwhile.
  const tunnel = await openTunnel(proxy, address, abort);
  const name = withoutBrackets(address.hostname);
  const createConnection = (): Socket =>
    connect({
      socket: tunnel,
      host: name,
      ...(isIP(name) === 0 && { servername: name }),
      ...trustFor(address),
    });
  return await answered(https.request(address, { ...asked, createConnection }));
}

async function throughProxy(
  proxy: URL,
  route: Omit<Route, 'proxy'>,
  abort: AbortSignal,
): Promise<IncomingMessage> {
  const { address, headers, method } = route;
  const { username, origin, pathname, search, host } = address;
  const auth = username === '' ? {} : { authorization: basicAuthorization(address) };
  const told = { ...headers, ...auth, ...credentialsFor(proxy), host };
  const options = {
    ...optionsFor(proxy, abort),
    method,
    path: origin + pathname + search,
    headers: told,
  };
  return await answered(requesterFor(proxy)(options));
}

export async function openTunnel(proxy: URL, address: URL, abort?: AbortSignal): Promise<Socket> {
  const target = `${address.hostname}:${address.port || '443'}`;
  const headers = { host: target, ...credentialsFor(proxy) };
  const options = { ...optionsFor(proxy, abort), method: 'CONNECT', path: target, headers };
  return await new Promise<Socket>((resolve, reject) => {
    const request = requesterFor(proxy)(options);
    request.once('error', reject);
    request.once('connect', ({ statusCode = 0 }, socket) => {
      if (statusCode === 200) resolve(socket);
      else reject(new ProxyRefusal(statusCode));
      if (statusCode !== 200) socket.destroy();
    });
    request.end();
  });
}

async function answered(request: ClientRequest): Promise<IncomingMessage> {
  return await new Promise((resolve, reject) =>
    request.once('response', resolve).once('error', reject).end(),
  );
}

function requesterFor({ protocol }: URL): typeof http.request {
  return protocol === 'https:' ? https.request : http.request;
}

function optionsFor(proxy: URL, abort?: AbortSignal): https.RequestOptions {
  const { protocol, port } = proxy;
  const host = withoutBrackets(proxy.hostname);
  // Otherwise Node.js would expect the target's name in the proxy's certificate.
  const servername = isIP(host) === 0 ? host : '';
  return {
    protocol,
    hostname: host,
    servername,
    port,
    agent: false,
    signal: abort,
    ...trustFor(proxy),
  };
}

/** Said explicitly: environment variables and flags of Node.js could weaken its defaults. */
function trustFor({ protocol }: URL): Pick<TlsOptions, 'ca' | 'rejectUnauthorized' | 'minVersion'> {
  if (protocol !== 'https:') return {};
  return { ca: trustedAuthorities(), rejectUnauthorized: true, minVersion: 'TLSv1.2' };
}

function credentialsFor(proxy: URL): OutgoingHttpHeaders {
  return proxy.username === '' ? {} : { 'proxy-authorization': basicAuthorization(proxy) };
}

let known: string[] | undefined;

/** Of Node.js and, as the original, of the host: for a private mirror. Read once, on demand: they take megabytes. */
export function trustedAuthorities(): string[] {
  known ??= [
    ...new Set(
      (['bundled', 'extra', 'system'] as const).flatMap((each) => getCACertificates(each)),
    ),
  ];
  return known;
}
