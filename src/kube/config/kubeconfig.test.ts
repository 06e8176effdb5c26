/**
 * Tests where the cluster is found, how files are merged, and the errors for a wrong kubeconfig.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { messageOf, RefitError } from '../../util/errors.ts';
import { loadChosenCluster, loadClusterConfig } from './kubeconfig.ts';

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-kubeconfig-'));
});
afterAll(async () => {
  await rm(directory, { recursive: true });
});

const PEM = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n';
const DATA = Buffer.from(PEM).toString('base64');

interface Parts {
  readonly current?: string;
  readonly cluster?: object;
  readonly user?: object;
  readonly context?: object;
}

function kubeconfig({ current = 'main', cluster, user, context }: Parts = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': current,
    clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:6443', ...cluster } }],
    users: [{ name: 'u', user: user ?? { token: 'secret' } }],
    contexts: [{ name: 'main', context: { cluster: 'c', user: 'u', ...context } }],
  };
}

async function file(name: string, content: object | string): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

async function problem(content: object | string): Promise<string> {
  const path = await file('wrong', content);
  const error = await loadClusterConfig({ path }).catch((thrown: unknown) => thrown);
  if (!(error instanceof RefitError))
    throw new Error('a RefitError was expected', { cause: error });
  expect(error.code).toBe('REFIT_KUBECONFIG');
  expect(error.message).toContain(path);
  return error.message;
}

test('JSON, with everything inline', async () => {
  const user = { 'client-certificate-data': DATA, 'client-key-data': DATA };
  const cluster = {
    'certificate-authority-data': DATA,
    'tls-server-name': 'api',
    'proxy-url': 'http://p',
  };
  const path = await file('full', kubeconfig({ user, cluster, context: { namespace: 'ships' } }));
  expect(await loadClusterConfig({ path })).toEqual({
    server: 'https://127.0.0.1:6443',
    certificateAuthority: { text: PEM },
    tlsServerName: 'api',
    proxyUrl: 'http://p',
    insecureSkipTlsVerify: false,
    user: { clientCertificate: { text: PEM }, clientKey: { text: PEM } },
    context: 'main',
    namespace: 'ships',
    files: [path],
  });
});

test('YAML, with files beside it', async () => {
  const path = await file(
    'yaml',
    [
      'apiVersion: v1',
      'kind: Config',
      'current-context: main',
      'clusters: [{name: c, cluster: {server: "https://[::1]:6443/", certificate-authority: pki/ca.crt}}]',
      'users:',
      '- name: u',
      '  user: {client-certificate: /abs/u.crt, client-key: u.key, tokenFile: token}',
      'contexts: [{name: main, context: {cluster: c, user: u}}]',
    ].join('\n'),
  );
  expect(await loadClusterConfig({ path })).toMatchObject({
    server: 'https://[::1]:6443',
    certificateAuthority: { file: join(directory, 'pki/ca.crt') },
    user: {
      clientCertificate: { file: '/abs/u.crt' },
      clientKey: { file: join(directory, 'u.key') },
      tokenFile: join(directory, 'token'),
    },
    namespace: 'default',
  });
});

test('the options --as and --as-group replace whom the kubeconfig impersonates', async () => {
  const path = await file(
    'as',
    kubeconfig({ user: { token: 'secret', as: 'eve', 'as-uid': '7' } }),
  );
  const config = await loadChosenCluster({ kubeconfig: path, as: 'ada', asGroup: ['a', 'b'] });
  expect(config.user).toMatchObject({
    token: 'secret',
    impersonate: { user: 'ada', groups: ['a', 'b'], extra: {} },
  });
  expect(config.user.impersonate).not.toHaveProperty('uid');
  const own = await loadChosenCluster({ kubeconfig: path });
  expect(own.user.impersonate).toMatchObject({ user: 'eve', uid: '7' });
});

test.each([
  [{ asGroup: ['a'] }, '--as-group needs the name of a user'],
  [{ as: '' }, '--as is empty'],
])('%j is refused', async (flags, message) => {
  const path = await file('as', kubeconfig());
  await expect(loadChosenCluster({ kubeconfig: path, ...flags })).rejects.toThrow(message);
});

test('impersonation and a plugin', async () => {
  const user = {
    as: 'eve',
    'as-uid': '7',
    'as-groups': ['a', 'b'],
    'as-user-extra': { 'example.org/Team': ['x'] },
    exec: {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: './plugin',
      args: ['get'],
      env: [{ name: 'A', value: 'b' }],
      provideClusterInfo: true,
    },
  };
  const path = await file('exec', kubeconfig({ user }));
  expect((await loadClusterConfig({ path })).user).toEqual({
    impersonate: {
      user: 'eve',
      uid: '7',
      groups: ['a', 'b'],
      extra: { 'example.org/Team': ['x'] },
    },
    exec: {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: join(directory, 'plugin'),
      args: ['get'],
      env: { A: 'b' },
      provideClusterInfo: true,
    },
  });
});

test('of several files, the first that sets something wins; missing and empty ones set nothing', async () => {
  const early = await file('early', {
    'current-context': 'main',
    clusters: [{ name: 'c', cluster: { server: 'https://early' } }],
  });
  const empty = await file('empty', '# nothing yet\n');
  const late = await file('late', kubeconfig({ current: 'other' }));
  const env = { KUBECONFIG: [join(directory, 'nowhere'), empty, early, late].join(delimiter) };
  const config = await loadClusterConfig({ env });
  expect(config).toMatchObject({
    server: 'https://early',
    files: [empty, early, late],
    user: { token: 'secret' },
  });
});

test('without KUBECONFIG, the file of the home directory', async () => {
  await mkdir(join(directory, '.kube'));
  await file('.kube/config', kubeconfig());
  expect(await loadClusterConfig({ env: { HOME: directory } })).toMatchObject({
    files: [join(directory, '.kube/config')],
  });
});

test('another context by name', async () => {
  const path = await file('contexts', kubeconfig({ current: 'nothing' }));
  expect(await loadClusterConfig({ path, context: 'main' })).toMatchObject({
    namespace: 'default',
  });
});

test.each([
  ['no current context', kubeconfig({ current: '' }), 'current-context is not set'],
  [
    'an unknown context',
    kubeconfig({ current: 'x' }),
    'context "x" is not defined (defined: main)',
  ],
  [
    'an unknown user',
    kubeconfig({ context: { user: 'eve' } }),
    'user "eve" is not defined (defined: u)',
  ],
  [
    'an unknown cluster',
    kubeconfig({ context: { cluster: 'd' } }),
    'cluster "d" is not defined (defined: c)',
  ],
  ['no user', kubeconfig({ context: { user: '' } }), 'context "main" has no user'],
  ['no server', kubeconfig({ cluster: { server: '' } }), 'server of cluster "c" is not set'],
  [
    'no URL',
    kubeconfig({ cluster: { server: '127.0.0.1' } }),
    'server of cluster "c" is not an http or https URL',
  ],
  [
    'a proxy of SOCKS',
    kubeconfig({ cluster: { 'proxy-url': 'socks5://me:s3cr3t@p' } }),
    'proxy-url of cluster "c" must be an http URL, and the server must have an https URL: Refit supports no other proxies',
  ],
  [
    'a proxy before a server of http',
    kubeconfig({ cluster: { 'proxy-url': 'http://p', server: 'http://c' } }),
    'proxy-url of cluster "c" must be an http URL, and the server must have an https URL',
  ],
  [
    'half a certificate',
    kubeconfig({ user: { 'client-certificate-data': DATA } }),
    'client-key of user "u" is not set',
  ],
  [
    'no PEM',
    kubeconfig({ user: { 'client-certificate-data': 'AAAA' } }),
    'client-certificate-data of user "u" must be PEM',
  ],
  [
    'a server with a password that is no URL',
    kubeconfig({ cluster: { server: 'ftp://me:s3cr3t@c' } }),
    'is not an http or https URL: ftp://***@c',
  ],
  [
    'a number for a token',
    kubeconfig({ user: { token: 5 } }),
    'token of user "u" must be a string',
  ],
  [
    'a password',
    kubeconfig({ user: { username: 'u', password: 'p' } }),
    'username of user "u" is set, but only',
  ],
  [
    'a plugin without command',
    kubeconfig({ user: { exec: {} } }),
    'command of exec of user "u" is not set',
  ],
  ['a list that is none', { ...kubeconfig(), users: {} }, 'users must be a list'],
  ['an entry without name', { ...kubeconfig(), users: [{}] }, 'users[0] has no name'],
  ['no mapping', 'just a text', 'its content must be a mapping'],
  ['no YAML', '{]', 'is neither YAML nor JSON'],
  ['nothing', '', 'current-context is not set'],
])('%s: %o', async (_name, content, message) => {
  expect(await problem(content)).toContain(message);
});

test('a terminal for a plugin is refused', async () => {
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: 'x',
    interactiveMode: 'Always',
  };
  expect(await problem(kubeconfig({ user: { exec } }))).toContain('plugins run without a terminal');
});

test.each([
  ['a file', { path: '/nowhere/at/all' }, 'cannot read /nowhere/at/all: ENOENT'],
  [
    'all files of KUBECONFIG',
    { env: { KUBECONFIG: '/nowhere/at/all' } },
    'no file of KUBECONFIG exists',
  ],
])('%s that is missing', async (_name, options, message) => {
  await expect(loadClusterConfig(options)).rejects.toThrow(message);
});

test.each([
  ['an alias', 'token: *s3cr3t-token', 'Unresolved alias'],
  ['a block', 'token: |s3cr3t-token', 'extra characters at line 1, column 9'],
])('an error in YAML does not quote the file: %s', async (_name, text, message) => {
  const path = join(directory, 'broken.yaml');
  await writeFile(path, text);
  const error: unknown = await loadClusterConfig({ path }).catch((thrown: unknown) => thrown);
  expect(messageOf(error)).toContain(message);
  expect(messageOf(error)).not.toContain('s3cr3t');
});

test.each([
  ['ends with `---`', (text: string) => `${text}\n---\n`],
  ['starts with a comment about apiVersion', (text: string) => `# apiVersion: v2\n---\n${text}`],
  ['is YAML that starts with a brace', (text: string) => `{${text.slice(1, -1)}, # of a tool\n}`],
])('a kubeconfig that %s is read', async (_name, write) => {
  const path = join(directory, 'as-written.yaml');
  const config = {
    'current-context': 'a',
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    clusters: [{ name: 'a', cluster: { server: 'https://192.0.2.1:6443' } }],
    users: [{ name: 'a', user: { token: 't' } }],
  };
  await writeFile(path, write(JSON.stringify(config)));
  expect(await loadClusterConfig({ path })).toMatchObject({ server: 'https://192.0.2.1:6443' });
});

test('an error in JSON does not quote the file: it may hold a token', async () => {
  const path = join(directory, 'broken.json');
  await writeFile(path, '{"users": [{"name": "a", "user": {"token": "s3cr3t-token" "x": 1}}]}');
  const error: unknown = await loadClusterConfig({ path }).catch((thrown: unknown) => thrown);
  expect(messageOf(error)).toContain(
    'is neither YAML nor JSON: there is a missing or an extra brace, quote or comma',
  );
  expect(messageOf(error)).not.toContain('s3cr3t');
});
