/** Tests the packed chart of a release: installs it from an empty folder, as a person without a checkout does. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { VERSION } from '../../src/cli/version.ts';
import { packedChart } from '../../tools/release/chart.ts';
import { buildTool } from './build-tool.ts';
import { kubeconfigFor, kubectlAs, restoreRoles } from './control-plane.ts';
import { expectHelm, helm } from './helm.ts';

const NAMESPACE = 'refit-system';
const PAGE = 'https://example.com/refit';
const MINUTES = 60_000;

let directory = '';

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-packed-chart-'));
  await buildTool('helm');
}, 15 * MINUTES);

afterAll(async () => await rm(directory, { recursive: true }));

const helmed = async (...args: readonly string[]): Promise<string> =>
  await expectHelm(directory, args);

/** Packs the chart in `folder`, and returns the path of the archive. */
async function packed(folder: string, name: string): Promise<string> {
  const archive = join(directory, name);
  await writeFile(archive, await packedChart(folder, 0));
  return archive;
}

test(
  'the archive installs, and its notes name the next command and no address',
  async () => {
    const archive = await packed('deploy/chart', `refit-${VERSION}.tgz`);
    const where = ['--namespace', NAMESPACE, '--kubeconfig', await kubeconfigFor('admin')];
    onTestFinished(async () => {
      await helm(directory, ['uninstall', 'refit', ...where]);
      await restoreRoles();
    });
    // The API server of the tests has these roles from its start. Their namespace is not deleted, because it also has
    // roles of other tests.
    const documents = parseAllDocuments(await readFile('deploy/rbac.yaml', 'utf8'));
    const roles = documents.filter((document) => document.get('kind') !== 'Namespace').join('');
    const deleting = ['delete', '--ignore-not-found', '-f', '-'];
    expect(await kubectlAs('admin', deleting, roles)).toMatchObject({ ok: true });
    const notes = await helmed('install', 'refit', archive, '--create-namespace', ...where);
    expect(notes).toContain('refit status');
    expect(notes).not.toContain('://');
    const got = ['get', 'deployment', 'refit-controller', '-n', NAMESPACE, '-o', 'name'];
    expect(await kubectlAs('admin', got)).toMatchObject({
      ok: true,
      stdout: 'deployment.apps/refit-controller\n',
    });
  },
  2 * MINUTES,
);

test('a chart with a home names it in its notes', async () => {
  const folder = join(directory, 'chart');
  await cp('deploy/chart', folder, { recursive: true });
  const chart = join(folder, 'Chart.yaml');
  await writeFile(chart, `${await readFile(chart, 'utf8')}home: ${PAGE}\n`);
  const archive = await packed(folder, 'refit-home.tgz');
  const notes = await helmed('install', 'refit', archive, '--dry-run=client');
  expect(notes).toContain(`Guides:        ${PAGE}`);
});

test('the archive has the page of values', async () => {
  const archive = await packed('deploy/chart', 'refit-readme.tgz');
  expect(await helmed('show', 'readme', archive)).toContain('`image.repository`');
});
