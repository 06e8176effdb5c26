/** Reads the entries of a kubeconfig: the address and trust of a cluster, the credentials of a user. */
import { isRecord } from '../../util/json.ts';
import type { ClusterConfig, ExecConfig, Impersonation, UserConfig } from './cluster-config.ts';
import { booleanField, complaint, type Entry, pathField, pemField, textField, textList } from './kubeconfig-fields.ts';

type ClusterPart = Pick<ClusterConfig, 'server' | 'certificateAuthority' | 'tlsServerName' | 'insecureSkipTlsVerify'>;

export function readCluster(entry: Entry): ClusterPart {
  const server = textField(entry, 'server');
  if (server === undefined) throw complaint(entry, 'server', 'is not set');
  if (!/^https?:/.test(server) || !URL.canParse(server)) {
    throw complaint(entry, 'server', `is not an http or https URL: ${server}`);
  }
  if (textField(entry, 'proxy-url')) throw complaint(entry, 'proxy-url', 'is set, but proxies are not supported');
  return defined({
    server: server.replace(/\/+$/, ''),
    certificateAuthority: pemField(entry, 'certificate-authority'),
    tlsServerName: textField(entry, 'tls-server-name'),
    insecureSkipTlsVerify: booleanField(entry, 'insecure-skip-tls-verify'),
  });
}

export function readUser(entry: Entry): UserConfig {
  for (const field of ['auth-provider', 'username']) {
    if (entry.fields[field])
      throw complaint(entry, field, 'is set, but only certificates, tokens and exec are supported');
  }
  const user = defined({
    clientCertificate: pemField(entry, 'client-certificate'),
    clientKey: pemField(entry, 'client-key'),
    token: textField(entry, 'token'),
    tokenFile: pathField(entry, 'tokenFile'),
    exec: readExec(entry),
    impersonate: readImpersonation(entry),
  });
  if (user.clientCertificate && !user.clientKey)
    throw complaint(entry, 'client-key', 'is not set beside client-certificate');
  return user;
}

function readExec(user: Entry): ExecConfig | undefined {
  const fields = user.fields['exec'];
  if (fields === undefined || fields === null) return undefined;
  if (!isRecord(fields)) throw complaint(user, 'exec', 'must be a mapping');
  const entry = { ...user, name: `exec of ${user.name}`, fields };
  const command = textField(entry, 'command');
  const apiVersion = textField(entry, 'apiVersion');
  if (command === undefined) throw complaint(entry, 'command', 'is not set');
  if (!apiVersion?.startsWith('client.authentication.k8s.io/')) {
    throw complaint(entry, 'apiVersion', 'must be client.authentication.k8s.io/v1 or v1beta1');
  }
  if (textField(entry, 'interactiveMode') === 'Always') {
    throw complaint(entry, 'interactiveMode', 'is Always, but plugins run without a terminal');
  }
  return defined({
    apiVersion,
    // As in kubectl: a bare name is found in PATH; a path is relative to the file.
    command: command.includes('/') ? (pathField(entry, 'command') ?? command) : command,
    args: textList(entry, 'args'),
    env: readEnv(entry),
    provideClusterInfo: booleanField(entry, 'provideClusterInfo'),
    installHint: textField(entry, 'installHint'),
  });
}

function readEnv(entry: Entry): Record<string, string> {
  const list = entry.fields['env'] ?? [];
  if (!Array.isArray(list)) throw complaint(entry, 'env', 'must be a list of name and value');
  return Object.fromEntries(
    list.map((item: unknown): [string, string] => {
      const [name, value] = isRecord(item) ? [item['name'], item['value'] ?? ''] : [];
      if (typeof name === 'string' && typeof value === 'string') return [name, value];
      throw complaint(entry, 'env', 'must be a list of name and value');
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

type Defined<T> = { [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined> } & {
  [K in keyof T as undefined extends T[K] ? never : K]: T[K];
};

/** Leaves out undefined members. */
function defined<T extends object>(value: T): Defined<T> {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as Defined<T>;
}
