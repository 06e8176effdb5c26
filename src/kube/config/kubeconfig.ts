/**
 * Finds the cluster: it reads kubeconfig files, merged as in kubectl, or the service account of a
 * pod.
 */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { readNamed } from '../../util/bounded-file.ts';
import { failing, RefitError, unlessError } from '../../util/errors.ts';
import { isRecord, parseJson } from '../../util/json.ts';
import type { ClusterConfig } from './cluster-config.ts';
import {
  type Entry,
  readCluster,
  readUser,
  refuseOutside,
  section,
  textField,
} from './kubeconfig-entries.ts';

export interface LoadOptions {
  /**
   * The path of one kubeconfig file. If it is absent, Refit uses KUBECONFIG, the service account of
   * the pod or ~/.kube/config, in this order.
   */
  readonly path?: string | undefined;
  readonly context?: string | undefined;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** The options of a command line that choose the cluster and the user. */
export interface ClusterFlags {
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  /** The user to impersonate. */
  readonly as?: string | undefined;
  /** The groups of the user to impersonate. */
  readonly asGroup?: readonly string[] | undefined;
  /** A bearer token that replaces all credentials of the connection. It does not come from a command line. */
  readonly token?: string | undefined;
}

/**
 * The most bytes of a kubeconfig from an untrusted source. This is ten times the size of a kubeconfig that Cluster API
 * writes. The limit is needed because the YAML parser may use a thousand times as much memory as the text.
 */
const MOST_FOREIGN = 64 * 1024;
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Returns the connection to the cluster. If there is no usable connection, throws REFIT_KUBECONFIG with the file and
 * the field.
 */
export async function loadClusterConfig(options: LoadOptions = {}): Promise<ClusterConfig> {
  const env = options.env ?? process.env;
  if (options.path !== undefined)
    return resolve([await readEntries(options.path)], options.context);
  const listed = (env['KUBECONFIG'] ?? '').split(delimiter).filter((path) => path !== '');
  if (listed.length > 0) return resolve(await readPresent(listed), options.context);
  const pod = await inCluster(env);
  if (pod) return pod;
  const usual = join(env['HOME'] ?? homedir(), '.kube', 'config');
  return resolve([await readEntries(usual)], options.context);
}

/**
 * Returns the connection that the options of a command line choose. With `as`, the connection impersonates that user,
 * instead of any user that the kubeconfig impersonates. Throws REFIT_USAGE if groups are given without a user.
 */
export async function loadChosenCluster({
  kubeconfig,
  context,
  as,
  asGroup: groups = [],
  token,
}: ClusterFlags): Promise<ClusterConfig> {
  if (as === '') throw new RefitError('REFIT_USAGE', '--as is empty: write the name of a user');
  if (as === undefined && groups.length > 0)
    throw new RefitError('REFIT_USAGE', '--as-group needs the name of a user, too: add --as NAME');
  const config = await loadClusterConfig({ path: kubeconfig, context });
  if (token !== undefined) return { ...config, user: { token } };
  if (as === undefined) return config;
  return { ...config, user: { ...config.user, impersonate: { user: as, groups, extra: {} } } };
}

/**
 * Returns the connection that a kubeconfig from an untrusted source describes. Messages use `name` for the kubeconfig.
 * Throws REFIT_KUBECONFIG if the kubeconfig refers to files or commands of this host.
 */
export async function parseClusterConfig(text: string, name: string): Promise<ClusterConfig> {
  if (text.length > MOST_FOREIGN)
    throw new RefitError('REFIT_KUBECONFIG', `${name} is larger than 64 KiB`);
  const entries = await readEntries(name, text);
  for (const entry of [...entries.clusters.values(), ...entries.users.values()])
    refuseOutside(entry);
  return resolve([entries], undefined);
}

/** The entries of one kubeconfig file, or of several merged files. */
interface Entries {
  readonly files: readonly string[];
  readonly currentContext: string | undefined;
  readonly clusters: ReadonlyMap<string, Entry>;
  readonly users: ReadonlyMap<string, Entry>;
  readonly contexts: ReadonlyMap<string, Entry>;
}

/** Reads the files of KUBECONFIG that exist. kubectl ignores missing files, too. */
async function readPresent(paths: readonly string[]): Promise<Entries[]> {
  const ifThere = unlessError(isMissing);
  const read = await Promise.all(paths.map(async (path) => await ifThere(readEntries(path))));
  const present = read.filter((file) => file !== undefined);
  if (present.length > 0) return present;
  throw new RefitError(
    'REFIT_KUBECONFIG',
    `no file of KUBECONFIG exists: ${paths.join(delimiter)}`,
  );
}

function isMissing(error: unknown): boolean {
  if (!(error instanceof RefitError)) return false;
  return isRecord(error.cause) && error.cause['code'] === 'ENOENT';
}

async function readEntries(path: string, text?: string): Promise<Entries> {
  const config = await parse(path, text);
  const where = { file: path, directory: dirname(path) };
  return {
    files: [path],
    currentContext: textField({ ...where, fields: config, name: 'the file' }, 'current-context'),
    clusters: section(config, 'clusters', 'cluster', where),
    users: section(config, 'users', 'user', where),
    contexts: section(config, 'contexts', 'context', where),
  };
}

async function parse(path: string, given?: string): Promise<Record<string, unknown>> {
  const text = given ?? (await readNamed(path, 'REFIT_KUBECONFIG'));
  const fail = failing('REFIT_KUBECONFIG', `${path} is neither YAML nor JSON: `);
  // The error of JSON.parse is not used, because it quotes the text, which may contain a token. YAML can start with a
  // brace, too, but the parser of YAML is not loaded for JSON.
  const value = text.trimStart().startsWith('{')
    ? (parseJson(text) ??
      (await parseFirst(text, () => fail('there is a missing or an extra brace, quote or comma'))))
    : ((await parseFirst(text, fail)) ?? {});
  if (isRecord(value)) return value;
  throw new RefitError(
    'REFIT_KUBECONFIG',
    `${path} is not a kubeconfig: its content must be a mapping`,
  );
}

/** Matches the part of a YAML parser's message that quotes the text. */
const QUOTED = /: .*?(?= at line \d+, column \d+$|$)/s;

/**
 * Parses the first document of a YAML text that is not empty. It imports the parser on demand, so that an agent with
 * a JSON kubeconfig never loads it.
 */
async function parseFirst(text: string, fail: (why: string) => never): Promise<unknown> {
  const { parseFirstYamlDocument } = await import('../../util/yaml.ts');
  // Some messages of the parser quote the text, which may contain a token. For example, the parser interprets the token
  // in `token: *abc` as an alias, and its message contains the name of the alias.
  return parseFirstYamlDocument(text, (why) => fail(why.replace(QUOTED, '')));
}

/**
 * Merges the files and returns the connection of the context. The first file that defines an entry
 * wins.
 */
function resolve(files: readonly Entries[], wanted: string | undefined): ClusterConfig {
  const merged = files.reduceRight(
    (late, early): Entries => ({
      files: [...early.files, ...late.files],
      currentContext: early.currentContext || late.currentContext,
      clusters: new Map([...late.clusters, ...early.clusters]),
      users: new Map([...late.users, ...early.users]),
      contexts: new Map([...late.contexts, ...early.contexts]),
    }),
  );
  const from = merged.files.join(', ');
  const name = wanted ?? merged.currentContext;
  if (!name) {
    const known = [...merged.contexts.keys()].join(', ') || 'none';
    const hint = `choose a context with --context; defined: ${known}`;
    throw new RefitError('REFIT_KUBECONFIG', `${from}: current-context is not set`, { hint });
  }
  const context = entryNamed(merged.contexts, 'context', name, from);
  const cluster = entryNamed(merged.clusters, 'cluster', referenced(context, 'cluster'), from);
  const user = entryNamed(merged.users, 'user', referenced(context, 'user'), from);
  return {
    ...readCluster(cluster),
    user: readUser(user),
    context: name,
    namespace: textField(context, 'namespace') ?? 'default',
    files: merged.files,
  };
}

function referenced(context: Entry, field: 'cluster' | 'user'): string {
  const name = textField(context, field);
  if (name) return name;
  throw new RefitError('REFIT_KUBECONFIG', `${context.file}: ${context.name} has no ${field}`);
}

function entryNamed(
  entries: ReadonlyMap<string, Entry>,
  kind: string,
  name: string,
  files: string,
): Entry {
  const entry = entries.get(name);
  if (entry) return entry;
  const known = [...entries.keys()].join(', ') || 'none';
  const hint =
    kind === 'context'
      ? 'choose another with --context, or correct current-context'
      : 'correct the context';
  throw new RefitError(
    'REFIT_KUBECONFIG',
    `${files}: ${kind} "${name}" is not defined (defined: ${known})`,
    { hint },
  );
}

async function inCluster(
  env: Readonly<Record<string, string | undefined>>,
): Promise<ClusterConfig | undefined> {
  const host = env['KUBERNETES_SERVICE_HOST'];
  const port = env['KUBERNETES_SERVICE_PORT'];
  if (!host || !port) return undefined;
  const namespace = await readFile(`${SERVICE_ACCOUNT}/namespace`, 'utf8').catch(() => undefined);
  if (namespace === undefined) return undefined;
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    certificateAuthority: { file: `${SERVICE_ACCOUNT}/ca.crt` },
    user: { tokenFile: `${SERVICE_ACCOUNT}/token` },
    namespace: namespace.trim() || 'default',
    files: [],
  };
}
