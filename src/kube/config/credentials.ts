/** Owns who we are to the server: headers and client certificate, fresh for each request. */
import { X509Certificate } from 'node:crypto';
import type { OutgoingHttpHeaders } from 'node:http';
import type { Clock } from '../../util/clock.ts';
import type { ClusterConfig, Impersonation, Pem } from './cluster-config.ts';
import { type ExecCredential, ExecPlugin } from './exec-plugin.ts';
import { RotatingFile } from './rotating-file.ts';

/** What one request needs to know; equal TLS material means that connections may be shared. */
export interface Identity {
  readonly headers: OutgoingHttpHeaders;
  readonly tls: TlsMaterial;
  /** What a plugin gave, so that a refusal hits the right one. */
  readonly exec?: ExecCredential | undefined;
}

export interface TlsMaterial {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

export class Credentials {
  readonly #config: ClusterConfig;
  readonly #clock: Clock;
  readonly #files = new Map<string, RotatingFile>();
  #plugin: ExecPlugin | undefined;

  constructor(config: ClusterConfig, clock: Clock) {
    this.#config = config;
    this.#clock = clock;
  }

  async current(): Promise<Identity> {
    const { user, certificateAuthority } = this.#config;
    const ca = await this.#pem(certificateAuthority);
    const exec = user.exec ? await this.#exec(ca) : undefined;
    const token = exec?.token ?? (await this.#token());
    return {
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(user.impersonate ? impersonationHeaders(user.impersonate) : {}),
      },
      tls: {
        ca,
        cert: exec?.certificate ?? (await this.#pem(user.clientCertificate)),
        key: exec?.key ?? (await this.#pem(user.clientKey)),
      },
      exec,
    };
  }

  /** After a 401: true where the next `current()` may give something that the server has not refused yet. */
  refresh(refused: Identity): boolean {
    for (const file of this.#files.values()) file.expire();
    this.#plugin?.expire(refused.exec);
    return this.#plugin !== undefined || this.#config.user.tokenFile !== undefined;
  }

  /** Why the server cannot accept the client certificate, where there is one and its dates are the reason. */
  async certificateProblem(): Promise<string | undefined> {
    const { cert } = (await this.current()).tls;
    if (cert === undefined) return undefined;
    const { validFromDate, validToDate } = new X509Certificate(cert);
    const now = this.#clock.now();
    if (now > validToDate.getTime()) return `it expired on ${validToDate.toISOString()}`;
    return now < validFromDate.getTime() ? `it is valid only from ${validFromDate.toISOString()}` : undefined;
  }

  async #exec(ca: string | undefined): Promise<ExecCredential> {
    const { exec } = this.#config.user;
    if (exec) this.#plugin ??= new ExecPlugin(exec, this.#config, ca, this.#clock);
    return (await this.#plugin?.credential()) ?? {};
  }

  async #token(): Promise<string | undefined> {
    const { token, tokenFile } = this.#config.user;
    return tokenFile === undefined ? token : (await this.#file(tokenFile)).trim();
  }

  async #pem(pem: Pem | undefined): Promise<string | undefined> {
    if (pem === undefined) return undefined;
    return 'text' in pem ? pem.text : await this.#file(pem.file);
  }

  async #file(path: string): Promise<string> {
    const known = this.#files.get(path) ?? new RotatingFile(path, this.#clock);
    this.#files.set(path, known);
    return await known.read();
  }
}

function impersonationHeaders({ user, uid, groups, extra }: Impersonation): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = { 'impersonate-user': user };
  if (uid !== undefined) headers['impersonate-uid'] = uid;
  if (groups.length > 0) headers['impersonate-group'] = [...groups];
  for (const [key, values] of Object.entries(extra)) headers[`impersonate-extra-${escapeKey(key)}`] = [...values];
  return headers;
}

/** The API server percent-decodes the rest of the header's name, which may hold only the characters of a token. */
function escapeKey(key: string): string {
  return encodeURIComponent(key).replace(/[()]/g, (char) => `%${char.charCodeAt(0).toString(16)}`);
}
