/** Proves that the stand-in for system-upgrade-controller runs with the original's rights, which know no kind of ours. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { apply, controlPlane, kubectlAs } from './control-plane.ts';

const ENTRY = join(import.meta.dirname, '..', '..', 'src', 'cmd', 'refit.ts');
const NAMESPACE = 'system-upgrade';
const USER = 'original-rights';
const OURS = 'upgrade.refit.dev';

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly { readonly apiGroups: readonly string[] }[];
  readonly roleRef?: { readonly name: string };
}

/** The original installs its CRD. */
const INSTALLS_CRD = {
  apiGroups: ['apiextensions.k8s.io'],
  resources: ['customresourcedefinitions'],
  verbs: ['create'],
};

/** The rights of deploy/rbac-cattle.yaml without those on kinds of ours, for another service account. */
async function grantOriginalRights(): Promise<void> {
  const documents = parseAllDocuments(await readFile('deploy/rbac-cattle.yaml', 'utf8'));
  const manifests = documents.map((document) => document.toJS() as Manifest);
  const subjects = [{ kind: 'ServiceAccount', name: USER, namespace: NAMESPACE }];
  const items = manifests
    .filter(({ metadata }) => metadata.name === 'refit-cattle')
    .map((manifest) => ({
      ...manifest,
      metadata: { ...manifest.metadata, name: USER },
      ...(manifest.rules
        ? {
            rules: [
              ...manifest.rules.filter(({ apiGroups }) => !apiGroups.includes(OURS)),
              ...(manifest.kind === 'ClusterRole' ? [INSTALLS_CRD] : []),
            ],
          }
        : {}),
      ...(manifest.roleRef ? { roleRef: { ...manifest.roleRef, name: USER }, subjects } : {}),
    }));
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: USER, namespace: NAMESPACE } };
  await apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [account, ...items] }));
}

async function writeKubeconfig(path: string): Promise<void> {
  const { stdout: token } = await kubectlAs('admin', ['create', 'token', USER, '-n', NAMESPACE]);
  const { url, caCertificate } = controlPlane();
  const authority = Buffer.from(caCertificate).toString('base64');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'it', cluster: { server: url, 'certificate-authority-data': authority } }],
    users: [{ name: 'it', user: { token: token.trim() } }],
    contexts: [{ name: 'it', context: { cluster: 'it', user: 'it' } }],
    'current-context': 'it',
  };
  await writeFile(path, JSON.stringify(config));
}

test('it leads without UpgradePolicies, says once that they are off, and ends well', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'refit-rights-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  const path = join(directory, 'kubeconfig');
  await grantOriginalRights();
  await writeKubeconfig(path);
  const child = spawn(process.execPath, [ENTRY, 'system-upgrade-controller'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      ...process.env,
      SYSTEM_UPGRADE_CONTROLLER_KUBE_CONFIG: path,
      SYSTEM_UPGRADE_CONTROLLER_NAME: 'system-upgrade-controller',
      SYSTEM_UPGRADE_CONTROLLER_INSTALL_CRD: 'true',
      SYSTEM_UPGRADE_CONTROLLER_NAMESPACE: NAMESPACE,
      SYSTEM_UPGRADE_CONTROLLER_LEADER_ELECT: 'true',
    },
  });
  const ended = once(child, 'exit');
  onTestFinished(() => void child.kill('SIGKILL'));
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()));
  await vi.waitFor(() => expect(log).toContain('"msg":"leading"'), { timeout: 150_000, interval: 50 });
  child.kill('SIGTERM');
  const [code] = (await ended) as [number | null];
  expect(code).toBe(0);
  expect(log.match(/cannot read UpgradePolicies/g)).toHaveLength(1);
  expect(log).not.toContain('"level":"error"');
});
