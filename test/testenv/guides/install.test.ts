/**
 * Tests docs/guides/install.md: installs, updates and removes Refit with Helm on the real API server, as the page
 * describes.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { buildTool } from '../build-tool.ts';
import { controlPlane, kubeconfigFor, kubectlAs, restoreRoles } from '../control-plane.ts';
import { blocksOf } from './blocks.ts';
import { ReaderShell } from './shell.ts';

const blocks = blocksOf('docs/guides/install.md');
const MINUTES = 60_000;
let directory = '';
let shell: ReaderShell;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-guide-'));
  shell = await ReaderShell.open(join(directory, 'reader'), {
    KUBECONFIG: await kubeconfigFor('admin'),
  });
  await shell.command('kubectl', `exec ${controlPlane().kubectl} "$@"`);
  await shell.command('helm', `exec ${await buildTool('helm')} "$@"`);
  // Removes the roles, as in a cluster without Refit. The Namespace of the Lease may exist already.
  const documents = parseAllDocuments(await readFile('deploy/rbac.yaml', 'utf8'));
  const roles = documents.filter((document) => document.get('kind') !== 'Namespace').join('');
  await kubectlAs('admin', ['delete', '--ignore-not-found', '-f', '-'], roles);
  await kubectlAs('admin', ['delete', 'namespace', 'refit-system']);
}, 15 * MINUTES);

afterAll(async () => {
  await shell[Symbol.asyncDispose]();
  await kubectlAs('admin', ['delete', 'namespace', 'refit-system', '--ignore-not-found']);
  await restoreRoles();
  await rm(directory, { recursive: true });
});

test.each(blocks)('$title', async (block) => {
  await shell.follow(block);
});

test('then nothing of the release is left', async () => {
  expect(blocks.filter(({ use }) => use === 'run').length).toBeGreaterThan(3);
  const kinds =
    'deployments,services,networkpolicies,poddisruptionbudgets,clusterroles,clusterrolebindings';
  const { stdout } = await kubectlAs('admin', [
    'get',
    kinds,
    '-A',
    '-l',
    'app.kubernetes.io/instance=refit',
    '-o',
    'name',
  ]);
  expect(stdout).toBe('');
});
