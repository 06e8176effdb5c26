/**
 * Keeps HTTP/1.1 connections to the API server alive, and replaces them when certificates change.
 */
import type {
  Agent,
  ClientRequest,
  ClientRequestArgs,
  IncomingMessage,
  OutgoingHttpHeaders,
} from 'node:http';
import https from 'node:https';
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { Duplex } from 'node:stream';
import { createSecureContext, type SecureContext } from 'node:tls';
import { callbackify } from 'node:util';
import { openTunnel } from '../../http/route.ts';
import { http } from '../../util/http.ts';
import { printableUrl } from '../../util/printable-url.ts';
import { onAbort } from '../../util/waits.ts';
import type { ClusterConfig } from '../config/cluster-config.ts';
import type { Identity, TlsMaterial } from '../config/credentials.ts';
import { TransportError } from '../status-error.ts';
import type { ServerAddress, ServerAddresses } from './server-addresses.ts';

export interface WireRequest extends Pick<Identity, 'headers' | 'tls'> {
  readonly method: string;
  readonly path: string;
  readonly body: string | undefined;
  readonly abort: AbortSignal;
}

/**
 * Milliseconds until the kernel probes a silent connection. This detects that the peer of a watch
 * has vanished.
 */
const TCP_KEEP_ALIVE_MS = 30_000;
/**
 * The maximum number of idle connections that are kept. It equals the number of concurrent requests of a controller, so
 * that the next burst opens no new connections. The server closes idle connections later.
 */
const MAX_IDLE_SOCKETS = 32;

/** The TCP connection below each TLS connection. The TLS socket does not expose it. */
const wires = new WeakMap<object, Socket>();

/** Milliseconds that a connection may take before another API server is tried, if there is one. */
const CONNECT_MS = 2_000;

/**
 * This agent opens the TCP connection itself for two reasons: only a TCP connection can be reset, and the connection
 * may have to go to another API server.
 */
class TlsAgent extends https.Agent {
  readonly #config: ClusterConfig;
  readonly #addresses: ServerAddresses | undefined;
  /**
   * The parsed certificates. They are parsed once, because many connections may open at the same
   * time.
   */
  #context: SecureContext | undefined;

  constructor(
    options: https.AgentOptions,
    config: ClusterConfig,
    addresses: ServerAddresses | undefined,
  ) {
    super(options);
    this.#config = config;
    this.#addresses = addresses;
  }

  /** `options` are the options that `send` gives to the request. */
  override createConnection(
    options: ClientRequestArgs & { readonly abort?: AbortSignal },
    callback?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | null | undefined {
    const { server, proxyUrl } = this.#config;
    if (proxyUrl === undefined) {
      const address = this.#addresses?.next();
      return this.#secure(
        options,
        connect({ ...options, ...address } as TcpNetConnectOpts),
        address,
      );
    }
    const secured = async (): Promise<Duplex> =>
      this.#secure(
        options,
        await openTunnel(new URL(proxyUrl), new URL(server), options.abort),
      ) as Duplex;
    if (callback) callbackify(secured)(callback);
    return undefined;
  }

  #secure(
    options: ClientRequestArgs,
    wire: Socket,
    address?: ServerAddress,
  ): Duplex | null | undefined {
    try {
      this.#context ??= createSecureContext(this.options);
      const secureContext = this.#context;
      // TLS takes the configured server name from `options`, and compares the certificate with it.
      const socket = super.createConnection({
        ...options,
        socket: wire,
        secureContext,
      } as ClientRequestArgs);
      if (socket) wires.set(socket, wire);
      if (socket && address) this.#judge(address, wire, socket);
      return socket;
    } catch (error) {
      // This error occurs if the key does not match its certificate. No other code would then close the connection or
      // handle its error.
      wire.destroy();
      throw error;
    }
  }

  #judge(address: ServerAddress, wire: Socket, socket: Duplex): void {
    const onError = (): void => this.#addresses?.failed(address);
    socket.once('error', onError);
    socket.once('secureConnect', () => {
      socket.off('error', onError);
      wire.setTimeout(0);
    });
    if (this.#addresses !== undefined && this.#addresses.count > 1)
      wire.setTimeout(CONNECT_MS, () =>
        wire.destroy(new Error(`no connection within ${CONNECT_MS / 1000} s`)),
      );
  }
}

export interface Transport {
  /** Resolves with the head of the response. The caller must read or destroy the body. It rejects with a TransportError. */
  open(request: WireRequest): Promise<IncomingMessage>;
  /** Closes all connections. */
  close(): void;
}

/** One request that has not ended. */
interface SentRequest {
  readonly response: Promise<IncomingMessage>;
  /**
   * Returns true if the server may have closed an idle connection just before this read used it.
   * The caller can then send the read again.
   */
  wasStale(): boolean;
  /** Returns true if the request may have left this machine. */
  wasSent(): boolean;
}

/** Returns a transport. Without `addresses`, it uses only the server of `config`. */
export function transportTo(config: ClusterConfig, addresses?: ServerAddresses): Transport {
  const base = new URL(config.server);
  const isSecure = base.protocol === 'https:';
  let agent: Agent | undefined;
  let known: TlsMaterial = {};
  const agentFor = (material: TlsMaterial): Agent => {
    if (agent && isSameMaterial(known, material)) return agent;
    if (agent) retire(agent);
    known = material;
    agent = isSecure
      ? new TlsAgent(tlsOptions(config, material), config, addresses)
      : new http.Agent(CONNECTIONS);
    return agent;
  };
  const send = (request: WireRequest): SentRequest => {
    const outgoing = (isSecure ? https : http).request({
      protocol: base.protocol,
      hostname: base.hostname.replace(/^\[|\]$/g, ''),
      port: base.port,
      path: `${base.pathname.replace(/\/$/, '')}${request.path}`,
      method: request.method,
      headers: { ...request.headers, ...bodyLength(request.body) },
      agent: agentFor(request.tls),
      abort: request.abort,
    } as ClientRequestArgs);
    return follow(outgoing, request, isSecure ? 'secureConnect' : 'connect');
  };
  return {
    async open(request) {
      const failures: unknown[] = [];
      for (;;) {
        const attempt = send(request);
        try {
          return await attempt.response;
        } catch (error) {
          const { aborted } = request.abort;
          if (!attempt.wasStale()) failures.push(error);
          const hasOther = !attempt.wasSent() && failures.length < (addresses?.count ?? 1);
          if (!aborted && (attempt.wasStale() || hasOther)) continue;
          const cause: unknown = aborted ? request.abort.reason : (failures[0] ?? error);
          const maybeApplied = attempt.wasSent() && request.method !== 'GET';
          const server = printableUrl(config.server);
          throw new TransportError(`${request.method} ${server}${request.path}`, {
            cause,
            maybeApplied,
            server,
          });
        }
      }
    },
    close: () => agent?.destroy(),
  };
}

function isSameMaterial(known: TlsMaterial, { ca, cert, key }: TlsMaterial): boolean {
  return known.ca === ca && known.cert === cert && known.key === key;
}

/** Closes the idle connections of the agent. A connection with a running request is closed when that request has ended. */
function retire(agent: Agent): void {
  agent.maxFreeSockets = 0;
  for (const sockets of Object.values(agent.freeSockets))
    for (const socket of sockets ?? []) socket.destroy();
}

function bodyLength(body: string | undefined): OutgoingHttpHeaders {
  return body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
}

const CONNECTIONS = {
  keepAlive: true,
  // Node.js has two options for TCP keep-alive: the first works from the start of a connection, the
  // second each time the connection becomes idle.
  keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
  keepAliveMsecs: TCP_KEEP_ALIVE_MS,
  maxFreeSockets: MAX_IDLE_SOCKETS,
  scheduling: 'lifo',
} as const;

function tlsOptions(
  { tlsServerName, insecureSkipTlsVerify }: ClusterConfig,
  { ca, cert, key }: TlsMaterial,
) {
  return {
    ...CONNECTIONS,
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
    ...(tlsServerName === undefined ? {} : { servername: tlsServerName }),
    rejectUnauthorized: insecureSkipTlsVerify !== true,
    // HTTP/2 is never offered, because requests hung when the server sent GOAWAY.
    ALPNProtocols: ['http/1.1'],
  };
}

function follow(outgoing: ClientRequest, request: WireRequest, connected: string): SentRequest {
  let sent = false;
  const response = new Promise<IncomingMessage>((resolve, reject) => {
    const listening = onAbort(request.abort, () => {
      const { socket } = outgoing;
      // The connection is reset, because an orderly close could still deliver a write that its
      // sender has given up.
      if (request.method !== 'GET' && sent && socket)
        (wires.get(socket) ?? socket).resetAndDestroy();
      outgoing.destroy(request.abort.reason instanceof Error ? request.abort.reason : undefined);
    });
    outgoing.once('response', resolve);
    // The listener stays for the whole request, because the socket may fail after the response has
    // begun. The reader of the response gets that error, too.
    outgoing.on('error', reject);
    outgoing.once('close', () => listening[Symbol.dispose]());
  });
  outgoing.once('socket', (socket: Socket) => {
    if (outgoing.reusedSocket) sent = true;
    else
      socket.once(connected, () => {
        sent = true;
      });
  });
  outgoing.end(request.body);
  return {
    response,
    wasStale: () => request.method === 'GET' && outgoing.reusedSocket,
    wasSent: () => sent,
  };
}
