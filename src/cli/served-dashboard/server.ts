/**
 * Serves the dashboard from the controller over HTTPS to users of the API server. The dashboard shows and does only
 * what the rights of the user allow.
 */
import { X509Certificate } from 'node:crypto';
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { isIP } from 'node:net';
import { join } from 'node:path';
import {
  type CertificateFiles,
  followCertificate,
  readCertificate,
} from '../../runtime/certificate.ts';
import { ifPossible, RefitError } from '../../util/errors.ts';
import { closeOnAbort, listen } from '../../util/listen.ts';
import type { Logger } from '../../util/log.ts';
import type { UiFiles } from '../dashboard/bundle.ts';
import { hostIn, isLoopback } from './gate.ts';
import { createRoutes } from './routes.ts';
import { arrivals, type TrustedProxyOptions } from './trusted-proxy.ts';
import { createViewers, type ViewersOptions } from './viewers.ts';

export interface ServedOptions extends Omit<ViewersOptions, 'abort'>, TrustedProxyOptions {
  /** `host:port`. Port 0 selects a free port. */
  readonly address: string;
  /** The directory of tls.crt and tls.key. If it is undefined, the server uses HTTP, which is allowed on the loopback interface only. */
  readonly certificates?: string | undefined;
  /** The names of this server that are not in its certificate, such as the name of an Ingress. */
  readonly names?: readonly string[];
  readonly files: UiFiles;
  readonly log: Logger;
}

/**
 * The limits for clients, in milliseconds and bytes. Slow clients must not keep connections for long, because the process has other work.
 */
const LIMITS = {
  headersTimeout: 5000,
  requestTimeout: 10_000,
  connectionsCheckingInterval: 1000,
  keepAliveTimeout: 10_000,
  maxHeaderSize: 16 * 1024,
};
const HANDSHAKE_MS = 5000;
const MOST_CONNECTIONS = 128;

/** Rejects with REFIT_USAGE if these options cannot be used together, and with REFIT_FILE if a file cannot be read. Does not listen yet. */
export async function checkServedOptions(
  options: Pick<ServedOptions, 'address' | 'certificates'> & TrustedProxyOptions,
): Promise<void> {
  assertPrivate(options);
  arrivals(options);
  if (options.certificates !== undefined) await readCertificate(filesIn(options.certificates));
}

/** Resolves when the server listens. Rejects with REFIT_USAGE or REFIT_FILE if the server cannot listen. */
export async function serveForViewers(options: ServedOptions) {
  const { address, certificates, names = [], log } = options;
  assertPrivate(options);
  const arrivalOf = arrivals(options);
  const ended = new AbortController();
  const viewers = createViewers({ ...options, abort: ended.signal });
  const proven: { by?: X509Certificate } = {};
  const extra = names.map((name) => name.toLowerCase());
  const isKnown = (name: string): boolean =>
    extra.includes(name) || (proven.by !== undefined && isProven(proven.by, name));
  const routes = createRoutes({
    ...options,
    viewers,
    isKnown,
    arrivalOf,
    isSecure: certificates !== undefined,
  });
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    routes(request, response).catch((error: unknown) => {
      log.warn('a request of the dashboard failed', { reason: error });
      response.destroy();
    });
  };
  await using opening = new AsyncDisposableStack();
  const server = await createListener(certificates, answer, (use) => opening.use(use), proven, log);
  server.maxConnections = MOST_CONNECTIONS;
  const { port } = await listen(server, address);
  log.info('the dashboard is served', { address, port });
  const opened = opening.move();
  return {
    name: 'dashboard',
    port,
    async run(abort: AbortSignal): Promise<void> {
      const checking = viewers.run(abort);
      await closeOnAbort(server, abort);
      ended.abort(new Error('the controller ends'));
      await checking;
      await opened.disposeAsync();
    },
  };
}

/** Returns whether the certificate is for this host name or IP address. */
function isProven(certificate: X509Certificate, name: string): boolean {
  // Node.js throws for a text that is neither. Every client may send such a text as the name of the host, so it must not fail the request.
  const found = ifPossible(() =>
    isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name),
  );
  return found !== undefined;
}

async function createListener(
  directory: string | undefined,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  use: (following: Disposable) => void,
  proven: { by?: X509Certificate },
  log: Logger,
): Promise<Server> {
  if (directory === undefined) return createHttpServer(LIMITS, answer);
  const files = filesIn(directory);
  const first = await readCertificate(files);
  const note = ({ cert }: typeof first): void => {
    proven.by = new X509Certificate(String(cert));
  };
  note(first);
  const server = createHttpsServer({ ...LIMITS, handshakeTimeout: HANDSHAKE_MS, ...first }, answer);
  const renew = (renewed: typeof first): void => {
    server.setSecureContext(renewed);
    note(renewed);
  };
  use(followCertificate(files, renew, log));
  return server;
}

function filesIn(directory: string): CertificateFiles {
  return { certificate: join(directory, 'tls.crt'), key: join(directory, 'tls.key') };
}

/**
 * Throws REFIT_USAGE if the server would use HTTP on an address that other machines can reach. A token must not be sent
 * over a network in plain text.
 */
function assertPrivate({
  address,
  certificates,
}: Pick<ServedOptions, 'address' | 'certificates'>): void {
  if (certificates !== undefined || isLoopback(address)) return;
  const found = hostIn(address) || 'all addresses';
  throw new RefitError(
    'REFIT_USAGE',
    `--ui-address ${address} listens at ${found}, where the tokens of viewers need TLS`,
    { hint: 'add --ui-cert-dir with tls.crt and tls.key, or listen at 127.0.0.1' },
  );
}
