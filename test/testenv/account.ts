/** Credentials of a ServiceAccount, as its pod has them, and what it did with them. */
import { readFile, writeFile } from 'node:fs/promises';
import { expect } from 'vitest';
import { stringify } from 'yaml';
import { controlPlane, kubectlAs } from './control-plane.ts';

/** Writes a kubeconfig with a bound token, and nothing else. */
export async function writeAccountKubeconfig(path: string, namespace: string, account: string): Promise<void> {
  const { stdout, stderr } = await kubectlAs('admin', ['create', 'token', account, '-n', namespace]);
  expect(stderr).toBe('');
  const { url, caCertificate } = controlPlane();
  const authority = Buffer.from(caCertificate).toString('base64');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'refit', cluster: { server: url, 'certificate-authority-data': authority } }],
    users: [{ name: 'refit', user: { token: stdout.trim() } }],
    contexts: [{ name: 'refit', context: { cluster: 'refit', user: 'refit' } }],
    'current-context': 'refit',
  };
  await writeFile(path, stringify(config), { mode: 0o600 });
}

/** `<decision> <verb> <path>` of each request of an account so far. */
export async function askedBy(namespace: string, account: string): Promise<string[]> {
  const lines = (await readFile(controlPlane().auditLog, 'utf8')).split('\n').slice(0, -1);
  return lines
    .map((line) => JSON.parse(line) as AuditLine)
    .filter((event) => event.user.username === `system:serviceaccount:${namespace}:${account}`)
    .map(
      ({ verb, requestURI, annotations }) => `${annotations?.['authorization.k8s.io/decision']} ${verb} ${requestURI}`,
    );
}

interface AuditLine {
  readonly verb: string;
  readonly requestURI: string;
  readonly user: { readonly username: string };
  readonly annotations?: Readonly<Record<string, string>>;
}
