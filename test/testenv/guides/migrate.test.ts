/** Follows the pages that move a cluster to Refit and back. It leaves out the parts that need hosts. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { buildCattlePlan } from '../../support/builders/cattle-plans.ts';
import { buildTool } from '../build-tool.ts';
import { apply, controlPlane, kubeconfigFor, kubectlAs, restoreRoles } from '../control-plane.ts';
import { blocksOf } from './blocks.ts';
import { ReaderShell } from './shell.ts';

const NAMESPACE = 'system-upgrade';
const MINUTES = 60_000;
/** The files with roles that the chart contains as well. The original uses other roles. */
const ROLES = ['rbac.yaml', 'rbac-cattle.yaml'];
let directory = '';
let shell: ReaderShell;

const original = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'system-upgrade-controller', namespace: NAMESPACE },
  spec: {
    selector: { matchLabels: { app: 'original' } },
    template: {
      metadata: { labels: { app: 'original' } },
      spec: {
        nodeSelector: { guide: 'none' },
        containers: [{ name: 'original', image: 'rancher/system-upgrade-controller' }],
      },
    },
  },
};

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-guide-'));
  shell = await ReaderShell.open(join(directory, 'reader'), {
    KUBECONFIG: await kubeconfigFor('admin'),
  });
  await shell.command('kubectl', `exec ${controlPlane().kubectl} "$@"`);
  await shell.command('helm', `exec ${await buildTool('helm')} "$@"`);
  for (const file of ROLES) {
    const documents = parseAllDocuments(await readFile(`deploy/${file}`, 'utf8'));
    const roles = documents.filter(
      (each) => !['Namespace', 'ServiceAccount'].includes(String(each.get('kind'))),
    );
    await kubectlAs('admin', ['delete', '--ignore-not-found', '-f', '-'], roles.join(''));
  }
  await apply(await readFile('deploy/crds/upgrade.cattle.io_plans.yaml', 'utf8'));
  const { metadata, ...plan } = buildCattlePlan('kept');
  await apply(JSON.stringify({ ...plan, metadata: { name: metadata.name, namespace: NAMESPACE } }));
  await apply(JSON.stringify(original));
  await writeFile(join(shell.directory, 'original.yaml'), JSON.stringify(original));
}, 15 * MINUTES);

afterAll(async () => {
  await shell[Symbol.asyncDispose]();
  await kubectlAs('admin', [
    'delete',
    'plans.upgrade.cattle.io,deployments',
    '--all',
    '-n',
    NAMESPACE,
  ]);
  await kubectlAs('admin', ['delete', 'namespace', 'refit-system', '--ignore-not-found']);
  await restoreRoles();
  await rm(directory, { recursive: true });
});

/** Returns the container of the Deployment, the Plans, and whether the account exists. */
async function found(): Promise<string[]> {
  const jsonpath = '-o=jsonpath={.items[*].spec.template.spec.containers[*].name}';
  const looks = [
    ['deployments', jsonpath],
    ['plans.upgrade.cattle.io', '-o=name'],
    ['serviceaccount/system-upgrade', '-o=name'],
  ];
  const answers = looks.map(async (look) =>
    (await kubectlAs('admin', ['get', ...look, '-n', NAMESPACE])).stdout.trim(),
  );
  return await Promise.all(answers);
}

const KEPT = ['plan.upgrade.cattle.io/kept', 'serviceaccount/system-upgrade'];

describe('from system-upgrade-controller, and back', () => {
  const blocks = blocksOf('docs/guides/migrate-from-system-upgrade-controller.md');

  test.each(blocks.slice(0, -1))('$title', async (block) => await shell.follow(block));

  test('then Refit has taken its place, and Plans are as before', async () => {
    expect(await found()).toEqual(['refit', ...KEPT]);
  });

  test.each(blocks.slice(-1))('$title', async (block) => await shell.follow(block));

  test('then the original is back, and Plans are as before', async () => {
    expect(await found()).toEqual(['original', ...KEPT]);
  });
});

describe('from KubeOne', () => {
  test.each(blocksOf('docs/guides/migrate-from-kubeone.md'))(
    '$title',
    async (block) => await shell.follow(block),
  );
});
