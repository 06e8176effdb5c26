/** Tests kubeconfigs that are copied from one folder to another. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { loadClusterConfig } from '../../kube/config/kubeconfig.ts';
import { withFullPaths } from './kubeconfig.ts';

const directory = mkdtempSync(join(tmpdir(), 'refit-kubeconfig-'));
afterAll(() => rmSync(directory, { recursive: true }));

const USERS = [
  ['files', 'client-certificate: pki/agent.crt, client-key: ../agent.key'],
  ['full paths', 'client-certificate: /pki/agent.crt, client-key: /pki/agent.key'],
  ['a token file', 'tokenFile: token'],
  [
    'a command',
    'exec: {apiVersion: client.authentication.k8s.io/v1, command: ./bin/get, args: [./a]}',
  ],
  ['a command of PATH', 'exec: {apiVersion: client.authentication.k8s.io/v1, command: get}'],
] as const;

test.each(USERS)('%s: the copy means what the original means', async (_what, user) => {
  for (const folder of ['from', 'to']) mkdirSync(join(directory, folder), { recursive: true });
  const from = join(directory, 'from', 'config');
  const to = join(directory, 'to', 'config');
  const text = `
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:6443', certificate-authority: ca.crt}}]
users: [{name: u, user: {${user}}}]
contexts: [{name: c, context: {cluster: c, user: u, namespace: prod}}]
`;
  writeFileSync(from, text);
  writeFileSync(to, withFullPaths(text, join(directory, 'from')));
  const original = await loadClusterConfig({ path: from });
  expect(original.certificateAuthority).toEqual({ file: join(directory, 'from', 'ca.crt') });
  expect(await loadClusterConfig({ path: to })).toEqual({ ...original, files: [to] });
});
