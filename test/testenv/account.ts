/** Credentials of a ServiceAccount, as its pod has them, and what it did with them. */
import { writeFile } from 'node:fs/promises';
import { expect } from 'vitest';
import { stringify } from 'yaml';
import { auditedSince } from './audit.ts';
import { controlPlane, kubectlAs } from './control-plane.ts';

/** Writes a kubeconfig with a bound token, and nothing else. */
export async function writeAccountKubeconfig(
  path: string,
  namespace: string,
  account: string,
): Promise<void> {
  const { stdout, stderr } = await kubectlAs('admin', [
    'create',
    'token',
    account,
    '-n',
    namespace,
  ]);
  expect(stderr).toBe('');
  const { url, caCertificate } = controlPlane();
  const authority = Buffer.from(caCertificate).toString('base64');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'refit', cluster: { server: url, 'certificate-authority-data': authority } },
    ],
    users: [{ name: 'refit', user: { token: stdout.trim() } }],
    contexts: [{ name: 'refit', context: { cluster: 'refit', user: 'refit' } }],
    'current-context': 'refit',
  };
  await writeFile(path, stringify(config), { mode: 0o600 });
}

/** `<decision> <verb> <path>` of each request of an account so far. */
export async function askedBy(namespace: string, account: string): Promise<string[]> {
  const username = `system:serviceaccount:${namespace}:${account}`;
  return (await auditedSince(0, username))
    .filter(({ user }) => user.username === username)
    .map(
      ({ verb, requestURI, annotations }) =>
        `${annotations?.['authorization.k8s.io/decision']} ${verb} ${requestURI}`,
    );
}
