/** Follows docs/guides/system-upgrade-controller.md from a running original to the end of the first Plan, on the real API server. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { loadClusterConfig } from '../../../src/kube/config/kubeconfig.ts';
import { simulatedNode } from '../../../tools/controlplane/simulated-nodes.ts';
import { writeAccountKubeconfig } from '../account.ts';
import { apply, controlPlane, kubeconfigFor, kubectlAs } from '../control-plane.ts';
import { blocksOf } from './blocks.ts';
import { ReaderShell } from './shell.ts';

const blocks = blocksOf('docs/guides/system-upgrade-controller.md');
const SERVERS = ['guide-server1', 'guide-server2'];
const NAMESPACE = 'system-upgrade';

let directory = '';
let shell: ReaderShell;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-guide-'));
  const label = { 'node-role.kubernetes.io/control-plane': 'true' };
  const nodes = SERVERS.map((name) => simulatedNode(name)).map(({ metadata, ...node }) => ({
    ...node,
    metadata: { ...metadata, labels: { ...metadata.labels, ...label } },
  }));
  for (const object of [...nodes, original()]) await apply(JSON.stringify(object));
  const kubeconfig = await kubeconfigFor('admin');
  const { server } = await loadClusterConfig({ path: kubeconfig });
  shell = await ReaderShell.open(join(directory, 'reader'), {
    KUBECONFIG: kubeconfig,
    // The simulated servers have the address of this machine, where the real API server listens at its own port.
    SYSTEM_UPGRADE_CONTROLLER_API_PORT: new URL(server).port,
  });
  await shell.command('kubectl', `exec ${controlPlane().kubectl} "$@"`);
  await writeAccount();
});

afterAll(async () => {
  await shell[Symbol.asyncDispose]();
  const owned = ['plans.upgrade.cattle.io,jobs,deployments', '--all', '-n', NAMESPACE];
  await kubectlAs('admin', ['delete', ...owned]);
  await kubectlAs('admin', ['delete', 'nodes', ...SERVERS]);
  await rm(directory, { recursive: true });
});

/** Returns the Deployment of the original with the parts that the page uses. No image is pulled in this test. */
function original(): object {
  const labels = { app: 'original' };
  const container = { name: 'original', image: 'rancher/system-upgrade-controller' };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'system-upgrade-controller', namespace: NAMESPACE },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [container], nodeSelector: { guide: 'none' } },
      },
    },
  };
}

/** Writes the kubeconfig to the path that the page names. It has only the rights of the account. */
async function writeAccount(): Promise<void> {
  await mkdir(join(shell.directory, '.kube'));
  await writeAccountKubeconfig(
    join(shell.directory, '.kube', 'config'),
    NAMESPACE,
    'system-upgrade',
  );
}

test('the page can be followed', () => {
  expect(blocks.map(({ use }) => use)).toEqual(['run', 'service', 'plan.yaml', 'run']);
});

test.each(blocks)('$title', async (block) => {
  await shell.follow(block);
  expect(shell.ended).toEqual([]);
});

test('then the original is stopped, and all nodes are done', async () => {
  const shown = async (...args: readonly string[]): Promise<string> =>
    (await kubectlAs('admin', ['get', ...args])).stdout;
  expect(
    await shown('deployment', '-n', NAMESPACE, '-o', 'jsonpath={.items[*].spec.replicas}'),
  ).toBe('0');
  const complete = '-o=jsonpath={.items[*].status.conditions[?(@.type=="Complete")].status}';
  const isComplete = async (): Promise<void> =>
    expect(await shown('plans.upgrade.cattle.io', '-n', NAMESPACE, complete)).toBe('True');
  await vi.waitFor(isComplete, { timeout: 60_000, interval: 250 });
  const hash = '-o=jsonpath={.items[*].metadata.labels.plan\\.upgrade\\.cattle\\.io/k3s-server}';
  const hashes = (await shown('nodes', '-l', 'node-role.kubernetes.io/control-plane', hash)).split(
    ' ',
  );
  expect(hashes).toEqual([expect.stringMatching(/^[0-9a-f]{56}$/), hashes[0]]);
});
