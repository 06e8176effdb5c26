/** Follows docs/guides/before-an-upgrade.md from the first question to the approval of the second wave, on the real API server. */
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { loadClusterConfig } from '../../../src/kube/config/kubeconfig.ts';
import { jobs, nodes } from '../../../src/kube/resources.ts';
import { createClient } from '../../../src/kube/transport/http-client.ts';
import { KUBERNETES_VERSION } from '../../../tools/controlplane/components.ts';
import { simulatedNode } from '../../../tools/controlplane/simulated-nodes.ts';
import { writeAccountKubeconfig } from '../account.ts';
import { apply, controlPlane, kubeconfigFor, kubectlAs } from '../control-plane.ts';
import { blocksOf } from './blocks.ts';
import { ReaderShell } from './shell.ts';

/** The version in the guide, and a later patch of the control plane of this test. */
const WRITTEN = 'v1.36.4';
const LATER = `${KUBERNETES_VERSION.split('.').slice(0, 2).join('.')}.99`;
const blocks = blocksOf('docs/guides/before-an-upgrade.md').map(({ text, ...block }) => ({
  ...block,
  text: text.replaceAll(WRITTEN, LATER),
}));
const AGENTS = ['ready-agent1', 'ready-agent2', 'ready-agent3'];
const NAMESPACE = 'system-upgrade';
const PATIENCE = { timeout: 150_000, interval: 250 };

let directory = '';
let shell: ReaderShell;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-guide-'));
  for (const kind of ['cattle.io_plans', 'refit.dev_upgradepolicies', 'refit.dev_noderollouts'])
    await apply(await readFile(`deploy/crds/upgrade.${kind}.yaml`, 'utf8'));
  await apply(await readFile('deploy/rbac-cattle.yaml', 'utf8'));
  await apply(await readFile('deploy/rbac-ready.yaml', 'utf8'));
  for (const name of AGENTS) await apply(JSON.stringify(simulatedNode(name)));
  shell = await ReaderShell.open(join(directory, 'reader'), {
    KUBECONFIG: await kubeconfigFor('admin'),
  });
  await shell.command('kubectl', `exec ${controlPlane().kubectl} "$@"`);
  const account = join(shell.directory, '.kube');
  await mkdir(account);
  await writeAccountKubeconfig(join(account, 'config'), NAMESPACE, 'system-upgrade');
  shell.start(
    'the controller',
    [
      'SYSTEM_UPGRADE_CONTROLLER_NAME=system-upgrade-controller',
      `SYSTEM_UPGRADE_CONTROLLER_NAMESPACE=${NAMESPACE}`,
      `SYSTEM_UPGRADE_CONTROLLER_KUBE_CONFIG=${join(account, 'config')}`,
      'refit system-upgrade-controller',
    ].join(' '),
  );
});

afterAll(async () => {
  await shell[Symbol.asyncDispose]();
  await kubectlAs('admin', ['delete', 'plans.upgrade.cattle.io,jobs', '--all', '-n', NAMESPACE]);
  await kubectlAs('admin', ['delete', 'upgradepolicies', '--all']);
  await kubectlAs('admin', ['delete', 'clusterrole,clusterrolebinding', 'refit-ready']);
  await kubectlAs('admin', ['delete', 'nodes', ...AGENTS]);
  await rm(directory, { recursive: true });
});

/** Lets each node report the new version whose Job has succeeded, as K3s would. Resolves with the names of all these nodes. */
async function actAsK3s(): Promise<string[]> {
  using client = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  const { items } = await client.list(jobs, { namespace: NAMESPACE });
  const done = items.flatMap(({ metadata, status }) =>
    (status?.succeeded ?? 0) > 0 ? (metadata.labels?.['upgrade.cattle.io/node'] ?? []) : [],
  );
  for (const name of done) {
    const status = { nodeInfo: { kubeletVersion: `${LATER}+k3s1` } };
    await client.patch(nodes, name, { status }, { type: 'merge', subresource: 'status' });
  }
  return done.toSorted();
}

async function said(command: string): Promise<string> {
  return (await shell.run(command)).said;
}

test('the page can be followed', () => {
  expect(blocks.map(({ use }) => use)).toEqual([
    'run',
    'plan.yaml',
    'run',
    'policy.yaml',
    'run',
    'run',
  ]);
});

test.each(blocks.slice(0, -1))('$title', async (block) => {
  await shell.follow(block);
  expect(shell.ended).toEqual([]);
});

test('then one node is upgraded, and the others wait for the approval', async () => {
  const waits = async (): Promise<void> => {
    expect(await actAsK3s()).toHaveLength(1);
    expect(await said('refit why')).toContain('approv');
  };
  await vi.waitFor(waits, PATIENCE);
  expect(shell.ended).toEqual([]);
});

test('after the approval, the other nodes follow', async () => {
  const [approval] = blocks.slice(-1);
  if (approval !== undefined) await shell.follow(approval);
  await vi.waitFor(async () => expect(await actAsK3s()).toEqual(AGENTS), PATIENCE);
  await vi.waitFor(async () => expect(await said('refit status')).toMatch(/ done 3\/3 /), PATIENCE);
});
