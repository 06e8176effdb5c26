/** Reads the credentials of each request: headers and client certificate. */
import { X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import type { OutgoingHttpHeaders } from 'node:http';
import type { Clock } from '../../util/clock.ts';
import { failing } from '../../util/errors.ts';
import type { ClusterConfig, Impersonation, Pem } from './cluster-config.ts';
import { type ExecCredential, type ExecPlugin, execPlugin } from './exec-plugin.ts';

/** The credentials of one request. Requests with equal TLS material may share connections. */
export interface Identity {
  readonly headers: OutgoingHttpHeaders;
  readonly tls: TlsMaterial;
  /**
   * The credential of the plugin. If the server refuses this credential, `refresh` expires only this credential, and
   * not a newer credential.
   */
  readonly exec?: ExecCredential | undefined;
}

export interface TlsMaterial {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** Reads the credentials of a connection. */
export interface Credentials {
  /** Returns the credentials of one request. It rejects with REFIT_KUBECONFIG if they cannot be read. */
  current(): Promise<Identity>;
  /**
   * The client must call this after an answer 401. Returns true if the next `current()` may return credentials that the server has not
   * refused yet.
   */
  refresh(refused: Identity): boolean;
  /**
   * Returns why the server refuses the client certificate if the reason is its validity period, else
   * undefined.
   */
  certificateProblem(): Promise<string | undefined>;
}

/**
 * Returns the credentials of a connection. `closed` ends a plugin that is running, because a
 * process that stops must not wait for it.
 */
export function credentialsOf(
  config: ClusterConfig,
  clock: Clock,
  closed?: AbortSignal,
): Credentials {
  const files = new Map<string, RotatingFile>();
  let plugin: ExecPlugin | undefined;
  const textOf = async (field: string, file: string): Promise<string> =>
    await files.getOrInsertComputed(file, () => rotatingFile(field, file, clock)).read();
  const pemOf = async (field: string, pem: Pem | undefined): Promise<string | undefined> =>
    pem === undefined || 'text' in pem ? pem?.text : await textOf(field, pem.file);
  /**
   * Returns the token of the user, if any. The token file has precedence over the token in the
   * kubeconfig.
   */
  const configuredToken = async (): Promise<string | undefined> => {
    const { tokenFile, token } = config.user;
    if (tokenFile === undefined) return token;
    const text = await textOf('tokenFile', tokenFile);
    return text.trim();
  };
  const current = async (): Promise<Identity> => {
    // The config is read at each request, because somebody may have replaced its user in the
    // meantime.
    const { user, certificateAuthority } = config;
    const ca = await pemOf('certificate-authority', certificateAuthority);
    if (user.exec) plugin ??= execPlugin(user.exec, config, ca, clock);
    const exec = await plugin?.credential(closed);
    const token = exec?.token ?? (await configuredToken());
    if (/[^\x20-\x7e]/.test(token ?? ''))
      failing('REFIT_KUBECONFIG')(
        'the token has a line break, or a character that no token has; write it in one line',
      );
    return {
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(user.impersonate ? impersonationHeaders(user.impersonate) : {}),
      },
      tls: {
        ca,
        cert: exec?.certificate ?? (await pemOf('client-certificate', user.clientCertificate)),
        key: exec?.key ?? (await pemOf('client-key', user.clientKey)),
      },
      exec,
    };
  };
  return {
    current,
    refresh(refused) {
      for (const file of files.values()) file.expire();
      plugin?.expire(refused.exec);
      return plugin !== undefined || config.user.tokenFile !== undefined;
    },
    async certificateProblem() {
      const { cert } = (await current()).tls;
      if (cert === undefined) return undefined;
      const { validFromDate, validToDate } = new X509Certificate(cert);
      const now = clock.now();
      if (now > validToDate.getTime()) return `it expired on ${validToDate.toISOString()}`;
      return now < validFromDate.getTime()
        ? `it is valid only from ${validFromDate.toISOString()}`
        : undefined;
    },
  };
}

function impersonationHeaders({ user, uid, groups, extra }: Impersonation): OutgoingHttpHeaders {
  // The header name ends with the key, which the API server percent-decodes. Therefore every character of the key that
  // is not allowed in a header name must be encoded.
  const escapeKey = (key: string): string =>
    encodeURIComponent(key).replace(/[()]/g, (char) => `%${char.charCodeAt(0).toString(16)}`);
  const extraHeaders: OutgoingHttpHeaders = Object.fromEntries(
    Object.entries(extra).map(([key, values]) => [
      `impersonate-extra-${escapeKey(key)}`,
      [...values],
    ]),
  );
  const headers: OutgoingHttpHeaders = { 'impersonate-user': user };
  if (uid !== undefined) headers['impersonate-uid'] = uid;
  if (groups.length > 0) headers['impersonate-group'] = [...groups];
  return { ...headers, ...extraHeaders };
}

interface RotatingFile {
  /**
   * Returns the text. It reads the file again only if its size, inode or modification time changed.
   * It rejects with REFIT_KUBECONFIG if the file cannot be read.
   */
  read(): Promise<string>;
  /** Makes the next call of `read` check the file for changes at once. */
  expire(): void;
}

/**
 * Milliseconds between two checks of a file. The kubelet replaces a file long before its old
 * content expires.
 */
const CHECK_INTERVAL_MS = 1_000;

/**
 * Returns a reader of a file that another process replaces while we run: a token, certificate or
 * key. `field` is for error messages.
 */
function rotatingFile(field: string, path: string, clock: Clock): RotatingFile {
  let checkedAt = Number.NEGATIVE_INFINITY;
  let text = '';
  /** The modification time, the size and the inode of the file when `text` was read; empty before the first read. */
  let stamp = '';
  return {
    async read() {
      if (clock.monotonic() - checkedAt < CHECK_INTERVAL_MS) return text;
      const fail = ({ message }: Error) =>
        failing('REFIT_KUBECONFIG')(`cannot read the file of ${field}: ${message}`);
      const { mtimeMs, size, ino } = await stat(path).catch(fail);
      const found = `${mtimeMs}:${size}:${ino}`;
      if (found !== stamp) text = await readFile(path, 'utf8').catch(fail);
      stamp = found;
      checkedAt = clock.monotonic();
      return text;
    },
    expire: () => {
      checkedAt = Number.NEGATIVE_INFINITY;
    },
  };
}
