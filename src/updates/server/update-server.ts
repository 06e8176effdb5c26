/**
 * Runs the update server. It serves the files, and the channels in three forms: in both formats of k0s, and as the
 * redirect that system-upgrade-controller expects.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { readFile, realpath, stat } from 'node:fs/promises';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import {
  type CertificateFiles,
  followCertificate,
  readCertificate,
} from '../../runtime/certificate.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { failing, messageOf, unlessError } from '../../util/errors.ts';
import { isRecord } from '../../util/json.ts';
import { closeOnAbort, listen } from '../../util/listen.ts';
import { ownMember } from '../../util/own-member.ts';
import { scalarText } from '../../util/scalar-text.ts';
import type { BasicTools } from '../../util/tools.ts';
import * as catalogs from './catalog.ts';
import { isKnownHost } from './known-hosts.ts';
import { BLOCK_BYTES, BlockCache, sendFile } from './send-file.ts';

export interface UpdateServerOptions extends BasicTools {
  /** The directory that `refit bundle` created. */
  readonly directory: string;
  /** The address to listen on, as `host:port`. */
  readonly address: string;
  /** The URL by which clients reach this server. If it is undefined, answers use the host name of the request. */
  readonly url: string | undefined;
  /**
   * The names that clients may use for this server, in addition to the names of this machine. They matter only if `url`
   * is undefined.
   */
  readonly hosts: readonly string[];
  /** The files for TLS. If it is undefined, the server uses plain http. */
  readonly certificate: CertificateFiles | undefined;
  /** A file with one token on each line. If it is undefined, everybody may read the channels. */
  readonly tokenFile: string | undefined;
  readonly metrics: Metrics;
}

/**
 * The time limits of a connection, in milliseconds. In addition, the server disconnects a client that sends or reads nothing for a minute.
 */
const LIMITS = { headersTimeout: 10_000, requestTimeout: 20_000, keepAliveTimeout: 30_000 };
const IDLE_MS = 60_000;
const MOST_CONNECTIONS = 4_000;
/** The most open connections from one address. The address may belong to one client, or to a proxy with many clients. */
const MOST_OF_ONE = 1_000;

/** Serves until `abort` aborts. Rejects at once with REFIT_FILE or REFIT_USAGE if an option is wrong. */
export async function runUpdateServer(
  options: UpdateServerOptions,
  abort: AbortSignal,
): Promise<void> {
  const { directory, certificate, log } = options;
  await catalogs.readCatalog(directory);
  const fail = failing('REFIT_FILE', `cannot use the tokens in ${options.tokenFile}: `);
  const tokens = await tokensOf(options).catch((error: unknown) => fail(messageOf(error)));
  if (tokens?.length === 0) fail('it has no token; write one on each line');
  const answer = updateRequests(options);
  const listener: RequestListener = (request, response) => void answer(request, response);
  const limits = { ...LIMITS, highWaterMark: BLOCK_BYTES };
  const tls =
    certificate &&
    createTlsServer({ ...limits, ...(await readCertificate(certificate)) }, listener);
  const listening: Server = tls ?? createServer(limits, listener);
  listening.maxConnections = MOST_CONNECTIONS;
  limitEachClient(listening, MOST_OF_ONE);
  listening.setTimeout(IDLE_MS);
  const { port } = await listen(listening, options.address);
  await using things = new AsyncDisposableStack();
  if (tls && certificate)
    things.use(followCertificate(certificate, (renewed) => tls.setSecureContext(renewed), log));
  log.info('serving', { directory, port, tls: tls !== undefined });
  await closeOnAbort(listening, abort);
}

/** Returns the valid tokens; undefined if no token is needed. */
async function tokensOf({
  tokenFile,
}: Pick<UpdateServerOptions, 'tokenFile'>): Promise<string[] | undefined> {
  if (tokenFile === undefined) return undefined;
  const lines = (await readFile(tokenFile, 'utf8')).split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '');
}

/** Returns the handler of requests. It never rejects. */
function updateRequests(options: UpdateServerOptions) {
  const { directory, clock, log, metrics } = options;
  const cache = new BlockCache();
  const latestCatalog = catalogs.followCatalog(directory);
  /** Sends a file. No token is needed, because the path has the hash of the content, which nobody can guess. */
  const sendContent = async (
    sha256: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<number> => {
    const path = await pathInside(directory, catalogs.pathOfFile(directory, sha256));
    if (path === undefined) return refuse(response, 404);
    // The server also sends files of releases that are no longer in the catalog, because running Plans still need them.
    const found = await stat(path, { throwIfNoEntry: false });
    if (!found?.isFile()) return refuse(response, 404);
    return await sendFile(request, response, {
      path,
      size: found.size,
      etag: `"${sha256}"`,
      cache,
    });
  };
  const route = async (request: IncomingMessage, response: ServerResponse): Promise<number> => {
    const { method = '', headers } = request;
    if (method !== 'GET' && method !== 'HEAD') return refuse(response, 405);
    const { pathname, searchParams } = addressOf(request);
    const [, hash] = /^\/files\/([0-9a-f]{64})\/[^/]+$/.exec(pathname) ?? [];
    if (hash !== undefined) return await sendContent(hash, request, response);
    const [, channel = '', minor, index] =
      /^\/([a-z][a-z0-9-]*)(?:\/(v\d+\.\d+))?(\/index\.yaml|\/)?$/.exec(pathname) ?? [];
    if (channel === '') return refuse(response, 404);
    if (!(await isAllowed(options, headers.authorization)))
      return refuse(response, 401, { 'www-authenticate': 'Bearer' });
    const catalog = await latestCatalog();
    const version = catalogs.versionFor(catalog, channel, clusterOf(request), minor);
    if (version === undefined) return refuse(response, 404);
    const base = baseOf(options, headers.host);
    if (base === undefined) return refuse(response, 400);
    const { host = '' } = headers;
    if (options.url === undefined && !isKnownHost(host, request.socket.localAddress, options.hosts))
      return misdirected(response, host);
    if (index === '/index.yaml')
      return sendIndex(request, response, listedIndex(catalog, channel, version, base));
    if (searchParams.has('clusterID'))
      return sendIndex(request, response, mappedIndex(catalog, channel, version, base));
    return refuse(response, 302, { location: `${base}/releases/${encodeURIComponent(version)}` });
  };
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const started = clock.monotonic();
    let bytes = 0;
    try {
      bytes = await route(request, response);
    } catch (error) {
      log.error('cannot answer', { path: request.url, reason: messageOf(error) });
      if (response.headersSent) response.destroy();
      else refuse(response, 500);
    }
    const { method, socket, url: path } = request;
    const ms = Math.round(clock.monotonic() - started);
    const status = response.statusCode;
    metrics.served(status, bytes);
    log.info('request', {
      from: socket.remoteAddress,
      method,
      path,
      status,
      bytes,
      ms,
      cluster: clusterOf(request),
    });
  };
}

/**
 * Resolves with the path after all symbolic links; undefined if there is no such file, or if a link
 * leads out of the folder.
 */
async function pathInside(directory: string, path: string): Promise<string | undefined> {
  const [folder, real] = await Promise.all([
    realpath(directory),
    unlessError(isMissing)(realpath(path)),
  ]);
  return real?.startsWith(`${folder}/`) === true ? real : undefined;
}

function isMissing(error: unknown): boolean {
  return isRecord(error) && ['ENOENT', 'ENOTDIR', 'ELOOP'].includes(scalarText(error['code']));
}

/**
 * Returns true if the token of the request is valid. The check takes the same time for every token.
 * The file of tokens may change at any time.
 */
async function isAllowed(options: UpdateServerOptions, authorization = ''): Promise<boolean> {
  const tokens = await tokensOf(options);
  if (!tokens) return true;
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  const given = digest(authorization.replace(/^Bearer /i, ''));
  return tokens.map((token) => timingSafeEqual(digest(token), given)).includes(true);
}

function baseOf({ url, certificate }: UpdateServerOptions, host = ''): string | undefined {
  if (url !== undefined) return url.replace(/(?<!\/)\/+$/, '');
  const isHost = /^[\w.-]+(:\d+)?$|^\[[\da-f:]+\](:\d+)?$/i.test(host);
  return isHost ? `${certificate ? 'https' : 'http'}://${host}` : undefined;
}

/**
 * Returns the UID of the namespace kube-system, from the header of k0s or of system-upgrade-controller; empty if the
 * request has neither header.
 */
function clusterOf(request: IncomingMessage): string {
  const { k0s_clusterid: ofK0s, 'x-suc-cluster-id': ofSuc } = request.headers;
  const given = ofK0s ?? ofSuc;
  const id = typeof given === 'string' ? given : addressOf(request).searchParams.get('clusterID');
  return (id ?? '').replace(/^kube-system:/, '').slice(0, 64);
}

function addressOf({ url = '/' }: IncomingMessage): URL {
  return URL.parse(url, 'http://localhost') ?? new URL('http://localhost');
}

function sendIndex(
  { headers, method }: IncomingMessage,
  response: ServerResponse,
  body: string,
): number {
  const etag = `"${createHash('sha256').update(body).digest('hex').slice(0, 32)}"`;
  const head = { etag, 'cache-control': 'no-cache', 'content-type': 'application/yaml' };
  if (headers['if-none-match'] === etag) return refuse(response, 304, head);
  response
    .writeHead(200, { ...head, 'content-length': Buffer.byteLength(body) })
    .end(method === 'HEAD' ? '' : body);
  return Buffer.byteLength(body);
}

function refuse(
  response: ServerResponse,
  code: number,
  headers: Readonly<Record<string, string>> = {},
): number {
  response.writeHead(code, { ...headers, 'content-length': 0 }).end();
  return 0;
}

/**
 * Refuses an unknown Host. Otherwise an attacker who can set this header in requests of other clients could choose the
 * server from which they download.
 */
function misdirected(response: ServerResponse, host: string): number {
  const text = `This server is not known by the name "${host}": start refit serve with --host ${host}, or with --url.\n`;
  const head = { 'content-type': 'text/plain; charset=utf-8', 'content-length': text.length };
  response.writeHead(421, head).end(text);
  return text.length;
}

export function limitEachClient(server: Server, most: number): void {
  const open = new Map<string, number>();
  server.on('connection', (socket: Socket) => {
    const client = clientOf(socket.remoteAddress ?? '');
    const count = open.get(client) ?? 0;
    if (count >= most) return socket.destroy();
    open.set(client, count + 1);
    return socket.once('close', () => {
      const left = (open.get(client) ?? 1) - 1;
      if (left === 0) open.delete(client);
      else open.set(client, left);
    });
  });
}

/**
 * Returns the address of the client. For IPv6, it returns only the first 64 bits, because one client may have all
 * addresses with the same first 64 bits.
 */
export function clientOf(address: string): string {
  if (address.includes('.')) return address.replace(/^.*:/, '');
  const [head = [], tail = []] = address.split('::').map((part) => part.split(':'));
  const zeros = Array.from({ length: Math.max(0, 8 - head.length - tail.length) }, () => '0');
  return [...head, ...zeros, ...tail].slice(0, 4).join(':');
}

/** Returns the index as JSON, which is also YAML. `base` is the URL of this server, without a slash at its end. */
export function listedIndex(
  catalog: catalogs.Catalog,
  channel: string,
  version: string,
  base: string,
): string {
  const byPlatform = Map.groupBy(
    ownMember(catalog.releases, version) ?? [],
    ({ platform }) => platform,
  );
  const downloadURLs = [...byPlatform].map(([platform, files]) => {
    const [os, arch] = platform.split('-');
    const [k0s, airgap] = (['k0s', 'airgap'] as const).map((kind) =>
      files.find((file) => file.kind === kind),
    );
    return {
      os,
      arch,
      ...(k0s && { k0s: urlOf(base, version, k0s), k0sSha256: k0s.sha256 }),
      ...(airgap && { airgapBundle: urlOf(base, version, airgap), airgapSha256: airgap.sha256 }),
    };
  });
  return `${JSON.stringify({ channel, version, downloadURLs, withdrawn: catalogs.withdrawnOf(catalog, channel) })}\n`;
}

/** Returns the index in the format without hashes. It is safe only if the server uses TLS. */
export function mappedIndex(
  catalog: catalogs.Catalog,
  channel: string,
  version: string,
  base: string,
): string {
  const files = ownMember(catalog.releases, version) ?? [];
  const urlsOf = (wanted: catalogs.CatalogFile['kind']): Record<string, string> =>
    Object.fromEntries(
      files
        .filter(({ kind }) => kind === wanted)
        .map((file) => [file.platform, urlOf(base, version, file)]),
    );
  const downloadURLs = { k0s: urlsOf('k0s'), airgap: urlsOf('airgap') };
  return `${JSON.stringify({ version, downloadURLs, withdrawn: catalogs.withdrawnOf(catalog, channel) })}\n`;
}

/** Returns the URL of a file. Nodes use the last segment of the URL as the name of an image bundle. */
function urlOf(
  base: string,
  version: string,
  { kind, platform, sha256 }: catalogs.CatalogFile,
): string {
  const name =
    kind === 'k0s' ? `k0s-${version}-${platform}` : `k0s-airgap-bundle-${version}-${platform}`;
  return `${base}/files/${sha256}/${encodeURIComponent(name)}`;
}
