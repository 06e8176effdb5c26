/** Returns the credentials of a ServiceAccount, as its pod has them, and the requests that the account made. */
import { writeFile } from 'node:fs/promises';
import { expect } from 'vitest';
import { stringify } from 'yaml';
import { auditedSince } from './audit.ts';
import { controlPlane, kubectlAs } from './control-plane.ts';

/** Writes a kubeconfig that contains only a bound token. */
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

/** Returns all requests of an account so far, as `<decision> <verb> <path>`. */
export async function askedBy(namespace: string, account: string): Promise<string[]> {
  const username = `system:serviceaccount:${namespace}:${account}`;
  return (await auditedSince(0, username))
    .filter(({ user }) => user.username === username)
    .map(
      ({ verb, requestURI, annotations }) =>
        `${annotations?.['authorization.k8s.io/decision']} ${verb} ${requestURI}`,
    );
}
