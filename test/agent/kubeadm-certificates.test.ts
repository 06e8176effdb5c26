/**
 * Tests the renewal of certificates on a control-plane host: the scripts work on real files, and the static pods
 * restart.
 */
import { existsSync } from 'node:fs';
import {
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { parse, stringify } from 'yaml';
import { makeCertificates, renewCertificate } from '../../sandbox/sshd/stand-in-certificates.ts';
import type { HostStepsParts } from '../../src/dialects/kubeadm/host/host-steps.ts';
import { renewCertificates } from '../../src/dialects/kubeadm/host/renew-certificates.ts';
import type { Pod } from '../../src/kube/resources.ts';
import { silentLogger } from '../../src/util/log.ts';
import { run } from '../../tools/controlplane/run.ts';
import { FakeClock } from '../support/clock/fake-clock.ts';
import { SkewedClock } from '../support/clock/skewed-clock.ts';
import { endOf } from '../support/kubeadm/static-pods.ts';

const DAY = 86_400_000;
const COMPONENTS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];
const RENEWED = 'upgrade.refit.dev/certificates';
const ANNOTATED = 'kubeadm.kubernetes.io/etcd.advertise-client-urls: https://10.0.0.11:2379';
const NAMES = [
  'apiserver',
  'apiserver-etcd-client',
  'apiserver-kubelet-client',
  'controller-manager.conf',
  'etcd-healthcheck-client',
  'etcd-peer',
  'etcd-server',
  'front-proxy-client',
  'scheduler.conf',
  'super-admin.conf',
];
let root = '';
let server: Server;

const pathOf = (component: string): string =>
  join(root, `etc/kubernetes/manifests/${component}.yaml`);
const pem = async (name: string): Promise<string> =>
  await readFile(join(root, 'etc/kubernetes/pki', name), 'utf8');

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'refit-certificates-'));
  for (const folder of ['run', 'usr/bin', 'var/lib', 'etc/kubernetes/manifests'])
    await mkdir(join(root, folder), { recursive: true });
  makeCertificates(root, { notBefore: Date.now() - 345 * DAY, notAfter: Date.now() + 20 * DAY });
  await cp(join(root, 'etc'), join(root, 'renewed/etc'), { recursive: true });
  for (const name of NAMES) renewCertificate(join(root, 'renewed'), name);
  server = createServer(
    { cert: await pem('apiserver.crt'), key: await pem('apiserver.key') },
    (_asked, answer) => answer.end(),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  for (const component of COMPONENTS) {
    const annotations = component === 'etcd' ? `  annotations:\n    ${ANNOTATED}\n` : '';
    const flags = [
      `--advertise-address=127.0.0.1`,
      `--secure-port=${port}`,
      '--tls-cert-file=/etc/kubernetes/pki/apiserver.crt',
    ];
    const list = [...flags, '--client-ca-file=/etc/kubernetes/pki/ca.crt']
      .map((flag) => `    - ${flag}\n`)
      .join('');
    const metadata = `metadata:\n${annotations}  labels:\n    component: ${component}\n  name: ${component}\n`;
    const container = `  - name: ${component}\n    image: r:5000/${component}:v1.36.3\n    command:\n    - ${component}\n`;
    const flagged = component === 'kube-apiserver' ? list : '';
    await writeFile(
      pathOf(component),
      `apiVersion: v1\nkind: Pod\n${metadata}spec:\n  containers:\n${container}${flagged}`,
    );
  }
  const renew =
    'echo "$*" >>"$REFIT_ROOT/kubeadm"; cat "$REFIT_ROOT/says" 2>/dev/null; [ ! -e "$REFIT_ROOT/dies" ] || exit 1; cp -r "$REFIT_ROOT/renewed/etc" "$REFIT_ROOT"';
  await writeFile(
    join(root, 'usr/bin/kubeadm'),
    `#!/bin/sh\n[ "$1" != version ] || exit 0\n${renew}\n`,
    {
      mode: 0o755,
    },
  );
});
afterEach(async () => {
  await new Promise<void>((resolve) => server.close(() => resolve()));
  await rm(root, { recursive: true });
});

interface Seen {
  /** The components that the kubelet restarted, in order. */
  readonly started: string[];
  readonly work: Promise<void>;
}

const ON_HOST = { path: process.env['PATH'] ?? '', log: silentLogger };

/** Renews the certificates. `reloads` is true if the API server reloads its certificate files without a restart. */
function renewed(
  rollout: string,
  kubelet: (component: string) => boolean,
  reloads = true,
  { path, log } = ON_HOST,
): Seen {
  const started: string[] = [];
  const known = new Map<string, string>();
  const pods = async (): Promise<Pod[]> => {
    if (reloads)
      server.setSecureContext({
        cert: await pem('apiserver.crt'),
        key: await pem('apiserver.key'),
      });
    return await Promise.all(
      COMPONENTS.map(async (component) => {
        const { metadata } = parse(await readFile(pathOf(component), 'utf8')) as Pod;
        const own = metadata.annotations?.[RENEWED] ?? '';
        if (own === rollout && known.get(component) !== own && kubelet(component))
          started.push(component);
        if (kubelet(component)) known.set(component, own);
        const annotations = { ...metadata.annotations, [RENEWED]: known.get(component) ?? '' };
        const status = { conditions: [{ type: 'Ready', status: 'True' as const }] };
        return { metadata: { ...metadata, annotations }, spec: { nodeName: 'cp1' }, status };
      }),
    );
  };
  // With this clock, each wait takes some time, as on a real host.
  const clock = new SkewedClock(new FakeClock(Date.now(), { skipsWaits: true }), {
    rate: 60,
    pauses: 60,
  });
  const environment = { REFIT_ROOT: root, PATH: `${join(root, 'usr/bin')}:${path}` };
  const on: HostStepsParts = {
    shells: {
      run: async (_host, input) => {
        const { ok, stdout, stderr } = await run('sh', ['-s'], { environment, input });
        return { code: ok ? 0 : 1, stdout, stderr };
      },
    },
    host: { name: 'cp1', role: 'controlPlane' },
    rollout,
    version: 'v1.36.3',
    parts: ['certificates'],
    members: async () => await Promise.resolve(new Map()),
    node: async () => await Promise.resolve({ metadata: { name: 'cp1' } }),
    pods,
    clock,
    log,
    abort: new AbortController().signal,
  };
  return { started, work: renewCertificates(on) };
}

const asked = async (): Promise<string[]> =>
  (await readFile(join(root, 'kubeadm'), 'utf8')).trim().split('\n').toSorted();
const ALL = NAMES.map((name) => `certs renew ${name}`);

test('each certificate of kubeadm is renewed, and each static pod starts anew, etcd first; a second time nothing', async () => {
  const before = await stat(pathOf('etcd'));
  const first = renewed('r1', () => true);
  await first.work;
  expect(await asked()).toEqual(ALL);
  expect(first.started).toEqual(COMPONENTS);
  expect(await endOf(root, 'apiserver')).toBeGreaterThan(Date.now() + 300 * DAY);
  expect(await readFile(pathOf('etcd'), 'utf8')).toContain(
    `  annotations:\n    ${RENEWED}: "r1"\n    ${ANNOTATED}\n  labels:`,
  );
  expect(await readFile(pathOf('kube-scheduler'), 'utf8')).toContain(
    `metadata:\n  annotations:\n    ${RENEWED}: "r1"\n  labels:`,
  );
  expect((await stat(pathOf('etcd'))).mode).toBe(before.mode);
  const again = renewed('r1', () => true);
  await again.work;
  expect(await asked()).toEqual(ALL);
  const another = renewed('r2', () => true);
  await another.work;
  expect(another.started).toEqual(COMPONENTS);
  expect((await readFile(pathOf('etcd'), 'utf8')).match(new RegExp(RENEWED, 'g'))).toHaveLength(1);
});

test('the next static pod waits for the one before', async () => {
  const { started, work } = renewed('r1', (component) => component !== 'kube-apiserver');
  await expect(work).rejects.toThrow(
    'kube-apiserver was not restarted by the kubelet; see journalctl',
  );
  expect(started).toEqual(['etcd']);
  expect(await readFile(pathOf('kube-scheduler'), 'utf8')).not.toContain(RENEWED);
});

test('where kubeadm fails, nothing starts anew; the next run asks it again', async () => {
  await writeFile(join(root, 'dies'), '');
  await expect(renewed('r1', () => true).work).rejects.toThrow(
    'step certificates failed with exit code 1',
  );
  expect(await readFile(pathOf('etcd'), 'utf8')).not.toContain(RENEWED);
  await rm(join(root, 'dies'));
  await renewed('r1', () => true).work;
  expect(await endOf(root, 'etcd/server')).toBeGreaterThan(Date.now() + 300 * DAY);
});

test('new certificates with a life of ten days do not end soon, though they begin with their old authority', async () => {
  for (const name of NAMES) renewCertificate(join(root, 'renewed'), name, 10 * DAY);
  await renewed('r1', () => true).work;
  expect(await endOf(root, 'apiserver')).toBeLessThan(Date.now() + 11 * DAY);
});

test.each([
  'MISSING! certificate for serving the Kubernetes API',
  "Detected external ca, certificate for serving the Kubernetes API can't be renewed",
  '[renew] Error reading configuration from the Cluster. Falling back to default configuration',
])('where kubeadm ends well but says %j, nothing starts anew', async (said) => {
  await writeFile(join(root, 'says'), `${said}\n`);
  await expect(renewed('r1', () => true).work).rejects.toThrow(
    /did not renew \S+ by the configuration of the cluster: no static pod was restarted$/,
  );
  for (const component of COMPONENTS)
    expect(await readFile(pathOf(component), 'utf8')).not.toContain(RENEWED);
});

test('the renewal fails if the API server still serves the old certificate', async () => {
  await expect(renewed('r1', () => true, false).work).rejects.toThrow(
    /^the API server does not serve \/etc\/kubernetes\/pki\/apiserver\.crt; the certificate that it serves ends on: \w/,
  );
});

test('a host without curl is told, and is done all the same', async () => {
  const tools = join(root, 'tools');
  await mkdir(tools);
  for (const folder of ['/usr/bin', '/bin', '/usr/sbin', '/sbin'])
    for (const name of await readdir(folder))
      if (name !== 'curl')
        await symlink(join(folder, name), join(tools, name)).catch(() => undefined);
  const warn = vi.fn<typeof silentLogger.warn>();
  const { started, work } = renewed('r1', () => true, true, {
    path: tools,
    log: { ...silentLogger, warn },
  });
  await work;
  expect(started).toEqual(COMPONENTS);
  expect(warn).toHaveBeenCalledExactlyOnceWith(
    'no curl on the host, so the certificate that its API server serves is not checked',
    {
      node: 'cp1',
    },
  );
});

test('what kubeadm did not make is left alone: its authority has no key here', async () => {
  await rm(join(root, 'etc/kubernetes/pki/ca.key'));
  await renewed('r1', () => true).work;
  expect(await asked()).toEqual(ALL.filter((line) => /etcd|front-proxy/.test(line)));
});

describe('a manifest that is not as kubeadm writes it stays as it is, and nothing is renewed', () => {
  const deeper = (text: string): string => text.replace(`    ${ANNOTATED}`, `      ${ANNOTATED}`);
  test.each<[string, string, (text: string) => string]>([
    [
      'in one line',
      'etcd',
      (text) => text.replace(`annotations:\n    ${ANNOTATED}`, 'annotations: {a: b}'),
    ],
    ['with four spaces', 'etcd', (text) => stringify(parse(text), { indent: 4 })],
    ['with annotations by six spaces', 'etcd', deeper],
    [
      'with annotations by three spaces',
      'etcd',
      (text) => text.replace(`    ${ANNOTATED}`, `   ${ANNOTATED}`),
    ],
    ['without metadata', 'etcd', (text) => text.replace(/metadata:[^]*spec:/, 'spec:')],
    ['the last of them', 'kube-scheduler', (text) => stringify(parse(text), { indent: 4 })],
  ])('%s', async (_form, component, change) => {
    const odd = change(await readFile(pathOf(component), 'utf8'));
    await writeFile(pathOf(component), odd);
    await expect(renewed('r1', () => true).work).rejects.toThrow(
      `${component}.yaml has no metadata as kubeadm writes it`,
    );
    expect(await readFile(pathOf(component), 'utf8')).toBe(odd);
    expect(existsSync(join(root, 'kubeadm'))).toBe(false);
  });
});

test('comments and empty lines are no part of the form', async () => {
  const text = await readFile(pathOf('etcd'), 'utf8');
  await writeFile(
    pathOf('etcd'),
    text.replace('  annotations:\n', '# ours\n  annotations:\n\n        # of kubeadm\n'),
  );
  await renewed('r1', () => true).work;
  expect((parse(await readFile(pathOf('etcd'), 'utf8')) as Pod).metadata).toEqual({
    annotations: {
      [RENEWED]: 'r1',
      'kubeadm.kubernetes.io/etcd.advertise-client-urls': 'https://10.0.0.11:2379',
    },
    labels: { component: 'etcd' },
    name: 'etcd',
  });
});
