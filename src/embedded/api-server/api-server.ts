/** Owns the in-memory API server: the public way to start one, its listeners, and what tests may ask of it. */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, systemClock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { readBody } from './body.ts';
import { Cluster } from './cluster.ts';
import { keepBudgets } from './disruption.ts';
import { ApiFailure } from './failure.ts';
import { runLifecycles } from './lifecycle.ts';
import { type ApiRequest, parseTarget, verbOf } from './request.ts';
import { type Reply, route } from './router.ts';
import { type ApiObject, Revisions } from './store.ts';
import { WatchHub } from './watch.ts';

/** One request as it was answered; of a watch, when it begins. */
export interface RequestRecord {
  readonly verb: string;
  /** `nodes`, `leases.coordination.k8s.io`, or the path where it is no resource. */
  readonly resource: string;
  readonly subresource: string | undefined;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly code: number;
}

export interface ApiServerOptions {
  readonly clock?: Clock;
  /** Loopback addresses, all on the port that the first one got; 127.0.0.1 where absent. */
  readonly addresses?: readonly string[];
  /** Milliseconds between bookmarks on a watch; one minute where absent, as in kube-apiserver. */
  readonly bookmarkIntervalMs?: number;
  /** Changes that each collection keeps for watches and for pages of old lists. */
  readonly eventHistory?: number;
  readonly onRequest?: (record: RequestRecord) => void;
}

export interface ApiServer {
  /** Of the first address, without a slash at the end. */
  readonly url: string;
  readonly urls: readonly string[];
  /** Forgets all history: what asks for an older resourceVersion gets 410. */
  compact(): void;
  /** The stored objects of a resource, in the order of their names; a view for tests, not to be changed. */
  objects(group: string, plural: string): readonly ApiObject[];
  stop(): Promise<void>;
}

/** Namespaces that every cluster has. */
const NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];

export async function startApiServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  const {
    clock = systemClock,
    addresses = ['127.0.0.1'],
    eventHistory = 10_000,
    bookmarkIntervalMs = 60_000,
  } = options;
  const revisions = new Revisions(eventHistory);
  const cluster = new Cluster(clock, revisions);
  const hub = new WatchHub(cluster, bookmarkIntervalMs);
  seedNamespaces(cluster);
  keepBudgets(cluster);
  runLifecycles(cluster, (resource) => hub.close(resource));
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    void answer(cluster, hub, request, response, options.onRequest);
  };
  const servers = await listen(addresses, listener);
  const urls = servers.map((server) => {
    const { address, port } = server.address() as AddressInfo;
    return `http://${address}:${port}`;
  });
  return {
    url: urls[0] ?? '',
    urls,
    compact: () => revisions.compact(),
    objects: (group, plural) => {
      const { collection } = cluster.resource(group, plural);
      return collection.at(revisions.current).map(({ object }) => object);
    },
    stop: async () => {
      await Promise.all(servers.map(close));
    },
  };
}

function seedNamespaces(cluster: Cluster): void {
  const { kind, collection } = cluster.resource('', 'namespaces');
  for (const name of NAMESPACES) {
    const object = kind.read({ metadata: { name } }, []);
    object.metadata.uid = randomUUID();
    object.metadata.creationTimestamp = cluster.timestamp();
    kind.prepare(object, undefined);
    collection.put(name, object);
  }
}

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/** Milliseconds that an idle connection is kept: longer than clients keep theirs, so that they close first. */
const IDLE = 120_000;

/** Every address gets the port of the first; another program may hold it there, so a few ports are tried. */
async function listen(addresses: readonly string[], listener: Listener): Promise<Server[]> {
  for (let attempt = 0; ; attempt++) {
    const servers: Server[] = [];
    try {
      for (const address of addresses) {
        const first = servers[0]?.address() as AddressInfo | undefined;
        servers.push(await listenOn(address, first?.port ?? 0, listener));
      }
      return servers;
    } catch (error) {
      await Promise.all(servers.map(close));
      if (attempt === 9) throw error;
    }
  }
}

async function listenOn(address: string, port: number, listener: Listener): Promise<Server> {
  const server = createServer({ keepAliveTimeout: IDLE, requestTimeout: 0 }, listener);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, address, resolve);
  });
  return server;
}

async function close(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

async function answer(
  cluster: Cluster,
  hub: WatchHub,
  incoming: IncomingMessage,
  response: ServerResponse,
  onRequest: ApiServerOptions['onRequest'],
): Promise<void> {
  const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://localhost');
  const head = { method: incoming.method ?? 'GET', path: pathname, query: searchParams };
  const warnings: string[] = [];
  let reply: (Reply & { retryAfter?: number }) | undefined;
  try {
    const request = { ...head, ...headersOf(incoming), body: await readBody(incoming), warnings };
    const outcome = route(cluster, request);
    if ('watch' in outcome) hub.serve(outcome.watch, request, outcome.target, response);
    else reply = outcome;
  } catch (error) {
    reply = failureReply(error);
  }
  onRequest?.(recordOf(head, reply?.code ?? 200));
  if (reply) send(response, reply, warnings);
}

function headersOf({ headers }: IncomingMessage): Pick<ApiRequest, 'contentType' | 'accept' | 'userAgent'> {
  const contentType = (headers['content-type'] ?? '').split(';')[0] ?? '';
  return { contentType: contentType.trim(), accept: headers.accept ?? '', userAgent: headers['user-agent'] ?? '' };
}

function failureReply(error: unknown): Reply & { retryAfter?: number } {
  const { status } = error instanceof ApiFailure ? error : new ApiFailure(500, 'InternalError', messageOf(error));
  const retryAfter = status.details?.retryAfterSeconds;
  return { code: status.code, body: JSON.stringify(status), ...(retryAfter !== undefined && { retryAfter }) };
}

function send(response: ServerResponse, reply: Reply & { retryAfter?: number }, warnings: readonly string[]): void {
  if (response.destroyed) return;
  const { code, body, contentType = 'application/json', retryAfter } = reply;
  if (warnings.length > 0)
    response.setHeader(
      'warning',
      warnings.map((text) => `299 - ${JSON.stringify(text)}`),
    );
  if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter);
  response.writeHead(code, { 'content-type': contentType, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

function recordOf(head: Pick<ApiRequest, 'method' | 'path' | 'query'>, code: number): RequestRecord {
  const target = parseTarget(head.path);
  const { group = '', plural = '', subresource, namespace, name } = target ?? {};
  const resource = plural === '' ? head.path : group === '' ? plural : `${plural}.${group}`;
  return { verb: verbOf(head, name), resource, subresource, namespace, name, code };
}
