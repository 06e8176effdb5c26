/** Tests `refit rollback` for Machines on a real API server: the record of a real update names the owner's change, and nothing is written. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import {
  clusters,
  machineDeployments,
  machines,
  SET_LABELS,
  TOPOLOGY_LABEL,
} from '../../src/api/capi/machine.ts';
import { nodeRollouts } from '../../src/api/kinds.ts';
import { apiVersionOf } from '../../src/kube/resources.ts';
import { parseYaml } from '../../src/util/yaml.ts';
import {
  FROM,
  type MachineCluster,
  machineOf,
  openMachineCluster,
  TO,
} from '../support/capi/machine-cluster.ts';
import { kubeconfigFor, kubectlAs } from './control-plane.ts';
import { runRefit } from './refit-process.ts';

const PATIENCE = { timeout: 150_000, interval: 200 };
const NODE = 'worker1';
const MACHINE = machineOf(NODE);
const POOL = 'pool';

let scene: MachineCluster;

beforeAll(async () => {
  scene = await openMachineCluster({ workers: 1 });
  await scene.whenCallable('h2');
  const { client } = scene.cluster;
  await client.create(clusters, {
    apiVersion: apiVersionOf(clusters),
    kind: clusters.kind,
    metadata: { name: 'stand-in', namespace: 'default' },
    spec: {},
  });
  await client.create(machineDeployments, {
    apiVersion: apiVersionOf(machineDeployments),
    kind: machineDeployments.kind,
    metadata: { name: POOL, namespace: 'default' },
    spec: { template: { spec: { version: TO } } },
  });
  const labels = { [SET_LABELS.deployment]: POOL };
  const options = { type: 'merge', namespace: 'default' } as const;
  await client.patch(machines, MACHINE, { metadata: { labels } }, options);
});
afterAll(async () => await scene[Symbol.asyncDispose]());

async function rolledBack(...args: readonly string[]) {
  const { code, stdout, stderr } = await runRefit(
    'rollback',
    ...args,
    '--kubeconfig',
    await kubeconfigFor('admin'),
  );
  const flat = (lines: readonly string[]): string => lines.join(' ').replaceAll(/\s+/g, ' ');
  return { code, stdout: flat(stdout), stderr: flat(stderr), yaml: stdout.join('\n') };
}

const unreadable = (why: string): never => {
  throw new Error(why);
};

const versionOfPool = async (): Promise<unknown> =>
  (await scene.cluster.client.get(machineDeployments, POOL, { namespace: 'default' })).spec
    ?.template?.spec?.version;

test('before any update, what the Machine ran is unknown', async () => {
  expect(await rolledBack(`machine/${MACHINE}`, '-n', 'default')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`Refit has recorded no update of it to ${FROM}`),
  });
});

test('after an update, the printed line takes the owner back, and only a user runs it', async () => {
  await scene.update(NODE, scene.manager('h2'));
  await vi.waitFor(async () => {
    const { status } = await scene.cluster.client.get(nodeRollouts, `capi-${MACHINE}`, {
      namespace: 'default',
    });
    // Other files update a Machine with the same name, so the history may have older runs.
    expect(status?.phase).toBe('done');
    expect(status?.history?.[0]).toMatchObject({ before: [{ version: FROM }] });
  }, PATIENCE);

  const patch = { spec: { template: { spec: { version: FROM } } } };
  for (const subject of [`machine/${MACHINE}`, `machinedeployment/${POOL}`]) {
    const said = await rolledBack(subject, '-n', 'default');
    expect(said).toMatchObject({ code: 0, stderr: '' });
    expect(said.stdout).toContain(
      `These Machines can go back: set spec.template.spec.version of MachineDeployment default/pool to ${FROM}.`,
    );
    expect(said.stdout).toContain(`${MACHINE} ${NODE} ${TO} ${FROM} ran this version before`);
    expect(said.stdout).toContain(
      `kubectl patch machinedeployments.cluster.x-k8s.io pool -n default --type=merge -p '${JSON.stringify(patch)}'`,
    );
    expect(said.stdout).toContain('Refit wrote nothing');
  }
  const checked = await rolledBack(`machine/${MACHINE}`, '--dry-run', 'server');
  expect(checked.stdout).toContain('which the API server checked');
  const printed = await rolledBack(`machine/${MACHINE}`, '-o', 'yaml');
  expect(parseYaml(printed.yaml, unreadable)).toMatchObject([
    { kind: 'MachineDeployment', metadata: { name: POOL, namespace: 'default' }, ...patch },
  ]);
  expect(await versionOfPool()).toBe(TO);

  const args = ['patch', 'machinedeployments.cluster.x-k8s.io', POOL, '-n', 'default'];
  expect(
    await kubectlAs('admin', [...args, '--type=merge', '-p', JSON.stringify(patch)]),
  ).toMatchObject({ ok: true });
  expect(await versionOfPool()).toBe(FROM);
});

test('what a topology owns goes back by its Cluster, which refuses it', async () => {
  const { client } = scene.cluster;
  const metadata = { labels: { [TOPOLOGY_LABEL]: '' } };
  const options = { type: 'merge', namespace: 'default' } as const;
  await client.patch(machineDeployments, POOL, { metadata }, options);
  await client.patch(clusters, 'stand-in', { spec: { topology: { version: TO } } }, options);
  expect(await rolledBack(`machine/${MACHINE}`, '-n', 'default')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(
      'Cluster default/stand-in decides the version in spec.topology.version, and Cluster API refuses to lower it',
    ),
  });
});

test('flags of Plans, and names that are none, are refused', async () => {
  const image = await rolledBack(`machine/${MACHINE}`, '--image', 'x');
  expect(image).toMatchObject({ code: 2, stderr: expect.stringContaining('are for Plans') });
  const named = await rolledBack('machine/default/x');
  expect(named).toMatchObject({ code: 2, stderr: expect.stringContaining('names no Machine') });
  const missing = await rolledBack('autopilot');
  expect(missing).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--reason is missing'),
  });
});
