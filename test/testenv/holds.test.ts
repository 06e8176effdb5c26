/** Tests `refit hold`, `unhold` and `start`, `--dry-run`, and `--as`, on a real API server with a controller that leads. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { plans } from '../../src/api/autopilot/plan.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import { OPEN_WINDOW_ANNOTATION } from '../../src/engine/model/controls.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { HOLD_ANNOTATION } from '../../src/signal/holds.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess, type RefitResult, runRefit } from './refit-process.ts';

const POLICY = 'holds-dark';

let admin: KubeClient;
let controller: RefitProcess;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  const path = await kubeconfigFor('controller');
  controller = new RefitProcess('controller', '--kubeconfig', path, '--lease-duration', '5s');
});
afterAll(async () => {
  expect(await controller.stop('SIGTERM')).toBe(0);
  admin.close();
});

async function asAdmin(...args: readonly string[]): Promise<RefitResult> {
  return await runRefit(...args, '--kubeconfig', await kubeconfigFor('admin'));
}

async function asOperator(...args: readonly string[]): Promise<RefitResult> {
  return await runRefit(...args, '--kubeconfig', await kubeconfigFor('operator'));
}

async function holdOf(puppets: Puppets, name: string): Promise<string | undefined> {
  return (await puppets.node(name)).metadata.annotations?.[HOLD_ANNOTATION];
}

test('a plan goes on around a held node, and takes it up after unhold', async () => {
  await using puppets = await Puppets.create(admin, 'holds-w1', 'holds-w2');
  const hold = ['hold', 'holds-w1', '--reason', 'disk'];
  const checked = await asOperator(...hold, '--dry-run', 'server');
  expect(checked).toMatchObject({ code: 0, stderr: [] });
  expect(checked.stdout.at(-1)).toContain('Nothing was written');
  expect(await holdOf(puppets, 'holds-w1')).toBeUndefined();

  expect(await asOperator(...hold)).toMatchObject({
    code: 0,
    stderr: [],
    stdout: [
      'holds-w1 is held by refit-operator until refit unhold holds-w1: disk. No plan starts on it; work in progress finishes.',
    ],
  });
  expect(JSON.parse((await holdOf(puppets, 'holds-w1')) ?? '')).toMatchObject({
    by: 'refit-operator',
    reason: 'disk',
  });
  await puppets.plan(1);
  await puppets.says('holds-w2', 'Completed');
  await puppets.until(async () => {
    const { stdout } = await asOperator('why', 'holds-w1');
    expect(stdout.join('\n')).toContain('holds-w1 is held by refit-operator: disk');
  });
  expect(await puppets.signal('holds-w1')).toBeUndefined();

  expect((await asOperator('unhold', 'holds-w1')).stdout).toEqual([
    'holds-w1 is not held any more: plans may start on it.',
  ]);
  await puppets.says('holds-w1', 'Completed');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  expect((await asOperator('unhold', 'holds-w1')).stdout).toEqual(['holds-w1 was not held.']);
  expect(await asOperator('hold', 'holds-w9')).toMatchObject({
    code: 1,
    stderr: [expect.stringContaining('REFIT_CONTROL: there is no Node or ControlNode holds-w9')],
  });
});

test('in a blackout a plan starts by one opening that names blackouts, and an Event says who opened it', async () => {
  await using puppets = await Puppets.create(admin, 'holds-o1');
  await admin.create(
    upgradePolicies,
    buildUpgradePolicy(POLICY, {
      plans: [{ dialect: 'autopilot' }],
      blackouts: [{ from: '2020-01-01', to: '2099-12-31' }],
    }),
  );
  onTestFinished(async () => await admin.delete(upgradePolicies, POLICY));
  await puppets.plan(1);
  await puppets.until(async () =>
    expect((await asOperator('why')).stdout.join('\n')).toContain('UpgradePolicy'),
  );
  const open = ['start', 'autopilot', '--now', '--for', '2h', '--reason', 'security fix'];
  const { stdout, code } = await asOperator(...open);
  expect([code, stdout.join('\n')]).toEqual([
    0,
    expect.stringContaining('It still waits: UpgradePolicy holds-dark'),
  ]);
  expect(await puppets.signal('holds-o1')).toBeUndefined();

  expect((await asOperator(...open, '--blackouts')).code).toBe(0);
  const value = (await admin.get(plans, 'autopilot')).metadata.annotations?.[
    OPEN_WINDOW_ANNOTATION
  ];
  expect(JSON.parse(value ?? '')).toMatchObject({
    by: 'refit-operator',
    reason: 'security fix',
    blackouts: true,
  });
  await puppets.says('holds-o1', 'Downloading');
  expect((await asOperator('status')).stdout.join(' ').replaceAll(/\s+/g, ' ')).toContain(
    'refit-operator opened the maintenance window until',
  );
  await puppets.says('holds-o1', 'Completed');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  await puppets.until(async () => {
    const { stdout } = await kubectlAs('admin', [
      'get',
      'events',
      '-A',
      '-o',
      'custom-columns=R:.reason,M:.message,N:.note',
    ]);
    expect(stdout).toMatch(/WindowOpened\s+Starting holds-o1: refit-operator opened/);
  });
});

test('with --as a command has the rights of that user, and writes as that user', async () => {
  await using puppets = await Puppets.create(admin, 'holds-a1');
  const viewer = await asAdmin('hold', 'holds-a1', '--as', 'refit-viewer');
  expect(viewer).toMatchObject({ code: 4, stdout: [] });
  expect(viewer.stderr.join('\n')).toContain('refit-viewer');
  expect(await holdOf(puppets, 'holds-a1')).toBeUndefined();

  const ada = ['--as', 'ada', '--as-group', 'system:masters'];
  expect(await asAdmin('hold', 'holds-a1', ...ada)).toMatchObject({ code: 0, stderr: [] });
  expect(JSON.parse((await holdOf(puppets, 'holds-a1')) ?? '')).toMatchObject({ by: 'ada' });

  const denied = await asOperator('status', ...ada);
  expect(denied).toMatchObject({ code: 4, stdout: [] });
  expect(denied.stderr.join('\n')).toContain('impersonate');
});
