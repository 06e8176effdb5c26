/**
 * Reads the entries of a kubeconfig: the address and the certificate authority of a cluster, and the credentials of a
 * user.
 */
import { isAbsolute, join } from 'node:path';
import { RefitError } from '../../util/errors.ts';
import { defined, isRecord } from '../../util/json.ts';
import { ownMember } from '../../util/own-member.ts';
import { printableUrl } from '../../util/printable-url.ts';
import type { ExecConfig, Impersonation, Pem, UserConfig } from './cluster-config.ts';

/**
 * Returns the server of a cluster entry and how to trust it. It throws REFIT_KUBECONFIG if a field
 * is wrong.
 */
export function readCluster(entry: Entry) {
  const server = textField(entry, 'server');
  if (server === undefined) throw complaint(entry, 'server', 'is not set');
  if (!/^https?:/.test(server) || !URL.canParse(server))
    throw complaint(entry, 'server', `is not an http or https URL: ${printableUrl(server)}`);
  const proxyUrl = textField(entry, 'proxy-url');
  if (
    proxyUrl !== undefined &&
    !(URL.parse(proxyUrl)?.protocol === 'http:' && server.startsWith('https:'))
  )
    throw complaint(
      entry,
      'proxy-url',
      'must be an http URL, and the server must have an https URL: Refit supports no other proxies',
    );
  return defined({
    server: server.replace(/(?<!\/)\/+$/, ''),
    proxyUrl,
    certificateAuthority: pemField(entry, 'certificate-authority'),
    tlsServerName: textField(entry, 'tls-server-name'),
    insecureSkipTlsVerify: booleanField(entry, 'insecure-skip-tls-verify'),
  });
}

/**
 * Returns the credentials of a user entry. Throws REFIT_KUBECONFIG if Refit does not support this kind of credentials.
 */
export function readUser(entry: Entry): UserConfig {
  const field = ['auth-provider', 'username'].find((name) => ownMember(entry.fields, name));
  if (field)
    throw complaint(entry, field, 'is set, but only certificates, tokens and exec are supported');
  const user = defined({
    clientCertificate: pemField(entry, 'client-certificate'),
    clientKey: pemField(entry, 'client-key'),
    token: textField(entry, 'token'),
    tokenFile: pathField(entry, 'tokenFile'),
    exec: readExec(entry),
    impersonate: readImpersonation(entry),
  });
  if (user.clientCertificate && !user.clientKey)
    throw complaint(entry, 'client-key', 'is not set, but client-certificate is');
  return user;
}

/** The fields that make this process read a file, run a command, or trust any server. */
const OUTSIDE =
  /^(exec|tokenFile|client-certificate|client-key|certificate-authority|insecure-skip-tls-verify)$/;

/**
 * Throws REFIT_KUBECONFIG if the entry refers to anything outside of the kubeconfig, or would send
 * credentials over http.
 */
export function refuseOutside(entry: Entry): void {
  const [field] = Object.keys(entry.fields).filter(
    (key) => OUTSIDE.test(key) && ownMember(entry.fields, key),
  );
  if (field)
    throw complaint(
      entry,
      field,
      'is not allowed here: use only data that the kubeconfig itself contains',
    );
  if (textField(entry, 'server')?.startsWith('http:'))
    throw complaint(
      entry,
      'server',
      'is an http URL, and over http anybody could answer and read the credentials',
    );
}

function readExec(user: Entry): ExecConfig | undefined {
  const fields = user.fields['exec'];
  if (fields === undefined || fields === null) return undefined;
  if (!isRecord(fields)) throw complaint(user, 'exec', 'must be a mapping');
  const entry = { ...user, name: `exec of ${user.name}`, fields };
  const command = textField(entry, 'command');
  const apiVersion = textField(entry, 'apiVersion');
  if (command === undefined) throw complaint(entry, 'command', 'is not set');
  if (!apiVersion?.startsWith('client.authentication.k8s.io/'))
    throw complaint(entry, 'apiVersion', 'must be client.authentication.k8s.io/v1 or v1beta1');
  if (textField(entry, 'interactiveMode') === 'Always')
    throw complaint(entry, 'interactiveMode', 'is Always, but plugins run without a terminal');
  return defined({
    apiVersion,
    // As in kubectl, a command without a slash is searched in PATH, and a command with a slash is a path relative to
    // the kubeconfig.
    command: command.includes('/') ? (pathField(entry, 'command') ?? command) : command,
    args: textList(entry, 'args'),
    env: readEnv(entry),
    provideClusterInfo: booleanField(entry, 'provideClusterInfo'),
    installHint: textField(entry, 'installHint'),
  });
}

function readEnv(entry: Entry): Record<string, string> {
  const list = entry.fields['env'] ?? [];
  if (!Array.isArray(list))
    throw complaint(entry, 'env', 'must be a list of entries with name and value');
  return Object.fromEntries(
    list.map((item: unknown): [string, string] => {
      const [name, value] = isRecord(item) ? [item['name'], item['value'] ?? ''] : [];
      if (typeof name === 'string' && typeof value === 'string') return [name, value];
      throw complaint(entry, 'env', 'must be a list of entries with name and value');
    }),
  );
}

function readImpersonation(entry: Entry): Impersonation | undefined {
  const user = textField(entry, 'as');
  if (user === undefined) return undefined;
  const extra = entry.fields['as-user-extra'] ?? {};
  if (!isRecord(extra)) throw complaint(entry, 'as-user-extra', 'must be a mapping');
  const lists = { ...entry, name: `as-user-extra of ${entry.name}`, fields: extra };
  return defined({
    user,
    uid: textField(entry, 'as-uid'),
    groups: textList(entry, 'as-groups'),
    extra: Object.fromEntries(Object.keys(extra).map((key) => [key, textList(lists, key)])),
  });
}

/** One entry of a kubeconfig, which may be a cluster, a user or a context. */
export interface Entry {
  readonly file: string;
  /** The directory to which paths in the entry are relative. */
  readonly directory: string;
  /** The name of the entry in messages, for example `user "admin"`. */
  readonly name: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/**
 * Returns the entries of one list (`clusters`, `users`, `contexts`) by name. If two entries have
 * the same name, the first one wins.
 */
export function section(
  config: Readonly<Record<string, unknown>>,
  list: string,
  member: string,
  { file, directory }: Pick<Entry, 'file' | 'directory'>,
): Map<string, Entry> {
  const entries = new Map<string, Entry>();
  const found = ownMember(config, list) ?? [];
  if (!Array.isArray(found))
    throw new RefitError('REFIT_KUBECONFIG', `${file}: ${list} must be a list`);
  for (const [index, item] of found.entries()) {
    if (!isRecord(item) || typeof item['name'] !== 'string')
      throw new RefitError('REFIT_KUBECONFIG', `${file}: ${list}[${index}] has no name`);
    const fields = ownMember(item, member) ?? {};
    const name = `${member} "${item['name']}"`;
    if (!isRecord(fields))
      throw new RefitError('REFIT_KUBECONFIG', `${file}: ${name} must be a mapping`);
    entries.getOrInsert(item['name'], { file, directory, name, fields });
  }
  return entries;
}

/**
 * Returns the text of a field; undefined if the field is absent, null or empty, which mean the same
 * in a kubeconfig.
 */
export function textField(entry: Entry, field: string): string | undefined {
  const value = ownMember(entry.fields, field);
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'string') return value;
  throw complaint(entry, field, 'must be a string');
}

/** Returns the value of a field; false if the field is absent or null. */
export function booleanField(entry: Entry, field: string): boolean {
  const value = ownMember(entry.fields, field) ?? false;
  if (typeof value === 'boolean') return value;
  throw complaint(entry, field, 'must be true or false');
}

/** Returns the strings of a field; an empty list if the field is absent or null. */
export function textList(entry: Entry, field: string): string[] {
  const value = ownMember(entry.fields, field) ?? [];
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
  throw complaint(entry, field, 'must be a list of strings');
}

/** Returns the path in a field, made absolute; undefined if the field has no text. */
export function pathField(entry: Entry, field: string): string | undefined {
  const path = textField(entry, field);
  return path === undefined || isAbsolute(path) ? path : join(entry.directory, path);
}

/**
 * Returns the PEM of a field. As in kubectl, PEM in base64 (`<field>-data`) has precedence over a
 * file (`<field>`).
 */
export function pemField(entry: Entry, field: string): Pem | undefined {
  const inline = textField(entry, `${field}-data`);
  if (inline !== undefined) {
    const text = Buffer.from(inline, 'base64').toString('latin1');
    if (text.includes('-----BEGIN ')) return { text };
    throw complaint(entry, `${field}-data`, 'must be PEM in base64');
  }
  const file = pathField(entry, field);
  return file === undefined ? undefined : { file };
}

/**
 * Returns the error for a field. `problem` continues the sentence that names the file, the field
 * and the entry.
 */
export function complaint(entry: Entry, field: string, problem: string): RefitError {
  return new RefitError('REFIT_KUBECONFIG', `${entry.file}: ${field} of ${entry.name} ${problem}`);
}
