/**
 * Tests that MachineDeployments are upgraded last, each with a canary first and within its budget, on a real API server
 * with a stand-in machine-controller.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { startJavascriptServer } from '../../sandbox/sshd/javascript-server.ts';
import type { UpgradeReport } from '../../src/dialects/kubeadm/command/report.ts';
import { kubeletVersionOf, nodes } from '../../src/kube/resources.ts';
import {
  createPool,
  DEFINITIONS,
  type MachineController,
  machineDeployments,
  machines,
  startMachineController,
} from '../support/kubeadm/machine-controller.ts';
import { kill, openScene, type Run, type Scene, TO } from '../support/kubeadm/suite.ts';
import { apply, kubectlAs } from './control-plane.ts';

const PATIENCE = { timeout: 150_000, interval: 200 };
const namespace = 'kube-system';
const FLAG = '--upgrade-machine-deployments';
const OLD = '1.36.2';
const NEW = '1.36.3';
let scene: Scene;
let manifest = '';
let controller: MachineController;

beforeAll(async () => {
  await apply(await readFile(DEFINITIONS, 'utf8'));
  scene = await openScene(startJavascriptServer, { hosts: 1 });
  manifest = await scene.cluster.manifest(TO);
  controller = startMachineController(scene.cluster.client);
});

afterEach(async () => {
  controller.behaviour = () => 'joins';
  await controller.clear();
});

afterAll(async () => {
  await controller[Symbol.asyncDispose]();
  await kubectlAs('admin', ['delete', '-f', DEFINITIONS]);
  await scene[Symbol.asyncDispose]();
});

const run = (...args: readonly string[]): Run => scene.refit(...args, '-m', manifest);
const applyAll = (...args: readonly string[]): Run =>
  run('apply', '--yes', FLAG, '--lease-duration', '3s', ...args);

async function poolNow(name: string) {
  return await scene.cluster.client.get(machineDeployments, name, { namespace });
}

async function hostVersions(): Promise<(string | undefined)[]> {
  const found = scene.cluster.hosts.map(
    async ({ name }) => await scene.cluster.client.get(nodes, name),
  );
  return (await Promise.all(found)).map(kubeletVersionOf);
}

async function pausedWithCanary(name: string): Promise<void> {
  await vi.waitFor(async () => expect((await poolNow(name)).spec.paused).toBe(true), PATIENCE);
}

async function ready(name: string, count: number): Promise<void> {
  await vi.waitFor(
    async () => expect((await poolNow(name)).status?.availableReplicas).toBe(count),
    PATIENCE,
  );
}

test('after all hosts, one MachineDeployment at a time is upgraded within its budget; paused ones stay', async () => {
  const { client } = scene.cluster;
  await createPool(client, 'b-surge', OLD, { replicas: 3 });
  await createPool(client, 'a-instead', OLD, { replicas: 2, maxSurge: 0, maxUnavailable: 1 });
  await createPool(client, 'c-paused', OLD, { replicas: 1 });
  for (const [name, count] of [
    ['a-instead', 2],
    ['b-surge', 3],
    ['c-paused', 1],
  ] as const)
    await ready(name, count);
  await client.patch(
    machineDeployments,
    'c-paused',
    { spec: { paused: true } },
    { namespace, type: 'merge' },
  );

  controller.history = [];

  const atFirstMachine: (string | undefined)[] = [];
  // The new Machines join only after Refit has observed them, as in a cloud.
  controller.behaviour = ({ metadata, spec }) => {
    if (spec.versions.kubelet !== NEW) return 'joins';
    if (atFirstMachine.length === 0) void hostVersions().then((all) => atFirstMachine.push(...all));
    const isHeld = controller.history.some(
      ({ name, paused }) => paused && name === metadata.labels?.['pool'],
    );
    return isHeld ? 'joins' : 'waits';
  };
  const applied = applyAll('-o', 'json');
  expect([await applied.ended, applied.stderr]).toEqual([
    0,
    expect.stringContaining('a-instead has v1.36.3.\n'),
  ]);
  expect(atFirstMachine.slice(0, 2)).toEqual([TO, TO]);
  expect(applied.stderr).toMatch(
    new RegExp(`a-instead +2 +${OLD} → ${TO}\nb-surge +3 +${OLD} → ${TO}\n`),
  );
  expect(applied.stderr).toContain(
    'warning machines: MachineDeployment c-paused stays as it is: somebody has paused it',
  );
  expect(applied.stderr).toContain(
    'warning machines: MachineDeployment a-instead may get several Machines, or lose',
  );
  expect(applied.stderr).not.toContain('MachineDeployment b-surge may');
  const { outcome, checks } = JSON.parse(applied.stdout) as UpgradeReport;
  const found = checks.filter(({ of }) => of.startsWith('MachineDeployment'));
  expect([outcome, found]).toEqual([
    'done',
    ['a-instead', 'b-surge'].map((name) => ({
      of: `MachineDeployment ${name}`,
      component: 'kubelet',
      found: TO,
    })),
  ]);
  const { history } = controller;
  const of = (name: string) => history.filter((each) => each.name === name);
  const started = (name: string): number =>
    history.findIndex((each) => each.name === name && each.machines[NEW]);
  const whole = (name: string, count: number): number =>
    history.findIndex(
      (each) => each.name === name && each.machines[NEW] === count && !each.machines[OLD],
    );
  expect(whole('a-instead', 2)).toBeLessThan(started('b-surge'));
  expect(of('a-instead').every(({ available }) => available >= 1)).toBe(true);
  expect(
    of('b-surge')
      .slice(-5)
      .every(({ available }) => available >= 3),
  ).toBe(true);
  for (const name of ['a-instead', 'b-surge']) {
    // While the MachineDeployment is paused, the canary is its only Machine with the new version.
    const held = of(name).filter(({ paused }) => paused);
    expect(held.length).toBeGreaterThan(0);
    expect(held.every(({ machines: { [NEW]: fresh } }) => fresh === 1)).toBe(true);
    expect((await poolNow(name)).metadata.annotations ?? {}).not.toHaveProperty(
      'upgrade.refit.dev/machines',
    );
  }
  expect((await poolNow('c-paused')).spec.template.spec.versions.kubelet).toBe(OLD);
}, 300_000);

test('a killed run leaves its MachineDeployment paused, the next run continues it, an interrupted run says so', async () => {
  const { client } = scene.cluster;
  await createPool(client, 'pool', OLD);
  await ready('pool', 2);
  controller.behaviour = ({ spec }) => (spec.versions.kubelet === NEW ? 'waits' : 'joins');
  const first = applyAll();
  await pausedWithCanary('pool');
  await kill(first);
  const plan = run('plan');
  expect([await plan.ended, plan.stdout]).toEqual([
    0,
    expect.stringContaining(`pool (${NEW}, not finished: ${FLAG} continues it)`),
  ]);

  const second = applyAll();
  await vi.waitFor(
    () => expect(second.stdout).toContain(`pool waits until a first Machine is Ready at ${TO}.`),
    PATIENCE,
  );
  second.child.kill('SIGINT');
  expect([await second.ended, second.stdout]).toEqual([
    130,
    expect.stringContaining('pool stays paused, until you run kubectl'),
  ]);
  expect((await poolNow('pool')).spec.paused).toBe(true);

  controller.behaviour = () => 'joins';
  const third = applyAll();
  expect([await third.ended, third.stderr]).toEqual([0, '']);
  const { items } = await client.listAll(machines, { namespace });
  expect(items.map(({ spec }) => spec.versions.kubelet)).toEqual([NEW, NEW]);
  expect((await poolNow('pool')).spec.paused).toBe(false);
}, 300_000);

test('a failed canary stops the run: its MachineDeployment stays paused and the next one is not started', async () => {
  const { client } = scene.cluster;
  await createPool(client, 'a', OLD);
  await createPool(client, 'b', OLD);
  await ready('a', 2);
  await ready('b', 2);
  controller.behaviour = ({ spec }) => (spec.versions.kubelet === NEW ? 'fails' : 'joins');
  const report = join(manifest, '../report.md');
  const applied = applyAll('--report', report);
  const why =
    /MachineDeployment a failed: a-\S+: CreateMachineError: the cloud has no room; it stays paused, until you run kubectl -n kube-system patch machinedeployment a /;
  expect([await applied.ended, applied.stdout]).toEqual([1, expect.stringMatching(why)]);
  const lines = (await readFile(report, 'utf8')).split('\n');
  expect(lines.filter((line) => line.startsWith('| MachineDeployment'))).toEqual([
    expect.stringMatching(/^\| MachineDeployment a \| kubelet \| a-\S+: CreateMachineError/),
    expect.stringContaining(
      '| MachineDeployment b | kubelet | not started, since MachineDeployment a failed |',
    ),
  ]);
  expect((await poolNow('a')).spec.paused).toBe(true);
  expect((await poolNow('b')).spec.template.spec.versions.kubelet).toBe(OLD);
}, 300_000);
