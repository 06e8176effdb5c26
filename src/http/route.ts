/**
 * Sends one request, directly or through a proxy. For https the proxy opens a tunnel.
 */
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import * as https from 'node:https';
import { isIP, type Socket } from 'node:net';
import { connect, getCACertificates, type TlsOptions } from 'node:tls';
import { http } from '../util/http.ts';
import { basicAuthorization } from '../util/printable-url.ts';
import { withoutBrackets } from './proxy-choice.ts';

/** One request, and the proxy through which it is sent. */
export interface Route {
  readonly address: URL;
  readonly headers: OutgoingHttpHeaders;
  /** The method is GET if this is absent. */
  readonly method?: 'HEAD' | 'POST' | 'PUT' | 'DELETE' | undefined;
  /** The body. It is present if the method is POST or PUT. */
  readonly body?: string | undefined;
  /** The PEM text of the only authorities that may have signed the certificate of the address. The default is `trustedAuthorities`. */
  readonly authority?: string | undefined;
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

/**
 * Resolves with the response after its headers have arrived. Rejects with an error of `node:http` or with a
 * ProxyRefusal.
 */
export async function get(
  { address, headers, method, body, authority, proxy }: Route,
  abort: AbortSignal,
): Promise<IncomingMessage> {
  const asked = { headers, method, signal: abort };
  if (proxy === undefined)
    return await answered(
      requesterFor(address)(address, { ...asked, agent: false, ...trustFor(address, authority) }),
      body,
    );
  if (address.protocol === 'http:')
    return await throughProxy(proxy, { address, headers, method, body }, abort);
  // The tunnel is opened here, because the proxy support of Node.js cannot be aborted while it opens a tunnel.
  const tunnel = await openTunnel(proxy, address, abort);
  const name = withoutBrackets(address.hostname);
  const createConnection = (): Socket =>
    connect({
      socket: tunnel,
      host: name,
      ...(isIP(name) === 0 && { servername: name }),
      ...trustFor(address, authority),
    });
  return await answered(https.request(address, { ...asked, createConnection }), body);
}

async function throughProxy(
  proxy: URL,
  route: Omit<Route, 'proxy'>,
  abort: AbortSignal,
): Promise<IncomingMessage> {
  const { address, headers, method, body } = route;
  const { username, origin, pathname, search, host } = address;
  const auth = username === '' ? {} : { authorization: basicAuthorization(address) };
  const told = { ...headers, ...auth, ...credentialsFor(proxy), host };
  const options = {
    ...optionsFor(proxy, abort),
    method,
    path: origin + pathname + search,
    headers: told,
  };
  return await answered(requesterFor(proxy)(options), body);
}

/**
 * Resolves with a connection to the address through the proxy. It rejects with a ProxyRefusal if
 * the proxy refuses.
 */
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

async function answered(request: ClientRequest, body?: string): Promise<IncomingMessage> {
  return await new Promise((resolve, reject) =>
    request.once('response', resolve).once('error', reject).end(body),
  );
}

function requesterFor({ protocol }: URL): typeof http.request {
  return protocol === 'https:' ? https.request : http.request;
}

function optionsFor(proxy: URL, abort?: AbortSignal): https.RequestOptions {
  const { protocol, port } = proxy;
  const host = withoutBrackets(proxy.hostname);
  // Without this name, Node.js would expect the name of the target in the certificate of the proxy.
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

/**
 * Returns the TLS settings. They are explicit, because environment variables and flags of Node.js
 * could weaken the defaults.
 */
function trustFor(
  { protocol }: URL,
  authority?: string,
): Pick<TlsOptions, 'ca' | 'rejectUnauthorized' | 'minVersion'> {
  if (protocol !== 'https:') return {};
  // Guard server-certificate. The server must prove its name.
  return { ca: authority ?? trustedAuthorities(), rejectUnauthorized: true, minVersion: 'TLSv1.2' };
}

function credentialsFor(proxy: URL): OutgoingHttpHeaders {
  return proxy.username === '' ? {} : { 'proxy-authorization': basicAuthorization(proxy) };
}

let known: string[] | undefined;

/**
 * Returns the certificate authorities of Node.js and of the host. A private mirror may need the authorities of the host,
 * and k0s trusts them, too. The authorities are read once, on demand, because they take megabytes.
 */
export function trustedAuthorities(): string[] {
  known ??= [
    ...new Set(
      (['bundled', 'extra', 'system'] as const).flatMap((each) => getCACertificates(each)),
    ),
  ];
  return known;
}
