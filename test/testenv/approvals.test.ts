/** Tests waves that need approval on a real API server: who may approve, what the admission policy refuses, and a leader that is killed. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { nodeRollouts, upgradePolicies } from '../../src/api/kinds.ts';
import type { NodeRollout } from '../../src/api/refit/node-rollout.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { nodes } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { apply, installKinds, kubeconfigFor, kubectlAs, type User } from './control-plane.ts';
import { Application } from './prometheus.ts';
import { PATIENCE, Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const POLICY = 'deploy/admission-policy-decisions.yaml';
const NAMESPACE = 'k0s-autopilot';
const NAME = 'autopilot-autopilot';
let admin: KubeClient;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  await apply(await readFile(POLICY, 'utf8'));
});

afterAll(async () => {
  await kubectlAs('admin', ['delete', '-f', POLICY]);
  admin.close();
});

async function refitAs(user: User, ...args: readonly string[]) {
  const { code, stdout, stderr } = await runRefit(
    ...args,
    '--kubeconfig',
    await kubeconfigFor(user),
  );
  const flat = (lines: readonly string[]): string => lines.join(' ').replaceAll(/\s+/g, ' ');
  return { code, stdout: flat(stdout), stderr: flat(stderr) };
}

async function leading(): Promise<RefitProcess> {
  return new RefitProcess('controller', '--kubeconfig', await kubeconfigFor('controller'));
}

async function specOf(): Promise<NodeRollout['spec']> {
  return (await admin.get(nodeRollouts, NAME, { namespace: NAMESPACE })).spec;
}

/** Writes the approvals with kubectl. Resolves with the answer of the API server. */
async function writeAs(user: User, approvals: readonly object[], ...more: readonly string[]) {
  const patch = JSON.stringify({ spec: { approvals } });
  const args = ['patch', 'noderollout', NAME, '-n', NAMESPACE, '--type=merge', '-p', patch];
  return await kubectlAs(user, [...args, ...more]);
}

test('wave 2 waits until somebody who may not change plans approves it', async () => {
  const policy = buildUpgradePolicy('approvals', {
    waves: [{ selector: { matchLabels: { canary: 'true' } } }, { approval: 'Manual' }],
    soak: '0s',
  });
  await admin.create(upgradePolicies, policy);
  onTestFinished(async () => await admin.delete(upgradePolicies, 'approvals'));
  await using puppets = await Puppets.create(admin, 'approve-w1', 'approve-w2', 'approve-w3');
  const label = { metadata: { labels: { canary: 'true' } } };
  await admin.patch(nodes, 'approve-w2', label, { type: 'merge' });
  {
    await using leader = await leading();
    await puppets.plan(3);
    await puppets.says('approve-w2', 'Completed');
    const waits = /wave 2 needs approval by UpgradePolicy approvals/;
    await puppets.until(async () =>
      expect((await refitAs('viewer', 'why', 'approve-w1')).stdout).toMatch(waits),
    );
    const why = await refitAs('viewer', 'why', 'approve-w1');
    expect(why.stdout).toContain('refit approve autopilot/autopilot --wave 2');
    expect((await refitAs('viewer', 'status')).stdout).toMatch(waits);
    expect(await puppets.signal('approve-w1')).toBeUndefined();
    await puppets.until(async () =>
      expect(
        (await admin.get(nodeRollouts, NAME, { namespace: NAMESPACE })).status?.waiting?.reason,
      ).toBe('WaveNeedsApproval'),
    );
    await leader.stop('SIGKILL');
  }

  // No process leads, so the approval stays in the object until a leader reads it.
  const wave = ['approve', 'plan/autopilot/autopilot', '--wave', '2'];
  expect((await refitAs('approver', 'pause')).code).toBe(4);
  expect((await refitAs('viewer', ...wave)).code).toBe(4);
  const run = `${(await specOf()).plan.uid}/id1`;
  const forged = await writeAs('approver', [{ wave: 2, by: 'ada', run }]);
  expect(forged).toMatchObject({ ok: false });
  expect(forged.stderr).toContain('spec.approvals[].by');
  const unnamed = await writeAs('approver', [{ wave: 2, run }]);
  expect(unnamed).toMatchObject({ ok: false });

  // Entries that do not count: one is for another run, the other is for another wave.
  const useless = [
    { wave: 2, by: 'refit-approver', run: 'other/id1' },
    { wave: 1, by: 'refit-approver', run },
  ];
  expect(await writeAs('approver', useless)).toMatchObject({ ok: true });
  await using leader = await leading();
  await puppets.until(async () =>
    expect((await refitAs('viewer', 'status')).stdout).toContain('wave 2 needs approval'),
  );
  expect(await puppets.signal('approve-w1')).toBeUndefined();

  const dry = await refitAs('approver', ...wave, '--dry-run', 'server');
  expect(dry).toMatchObject({ code: 0, stderr: '' });
  expect(dry.stdout).toContain('Nothing was written');
  expect((await specOf()).approvals).toEqual(useless);

  const said = await refitAs('approver', ...wave, '--reason', 'canaries look good');
  expect(said).toMatchObject({ code: 0, stderr: '' });
  expect(said.stdout).toContain(
    'wave 2 is approved, by refit-approver: canaries look good. Next: approve-w1, approve-w3.',
  );
  expect((await specOf()).approvals?.find((each) => each.wave === 2)).toMatchObject({
    by: 'refit-approver',
    reason: 'canaries look good',
    run,
  });
  await vi.waitFor(async () => {
    const { stdout } = await refitAs('viewer', 'why', 'approve-w1');
    expect(await puppets.signal('approve-w1'), stdout).toBeDefined();
  }, PATIENCE);
  expect((await refitAs('approver', ...wave)).stdout).toContain('wave 2 is approved already');
  expect((await refitAs('viewer', 'status')).stdout).toMatch(
    /wave 2 is approved, says refit-approver at \S+Z: canaries look good/,
  );
  await puppets.says('approve-w1', 'Completed');
  await puppets.says('approve-w3', 'Completed');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  expect(await refitAs('approver', ...wave)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('nothing is left to decide') as unknown,
  });
  expect(await leader.stop('SIGTERM')).toBe(0);
});

test('nodes wait for a failing health check until somebody accepts that', async () => {
  await using application = await Application.start();
  application.status = 503;
  const health = { http: [{ name: 'web', url: `${application.url}/` }] };
  await admin.create(upgradePolicies, buildUpgradePolicy('accepting', { health }));
  onTestFinished(async () => await admin.delete(upgradePolicies, 'accepting'));
  await using puppets = await Puppets.create(admin, 'accept-w1', 'accept-w2');
  await using leader = await leading();
  await puppets.plan(1);
  const fails = 'the health check web of UpgradePolicy accepting fails';
  const why = async (node: string): Promise<string> =>
    (await refitAs('viewer', 'why', node)).stdout;
  await puppets.until(async () => expect(await why('accept-w1')).toContain(fails));
  const told = await why('accept-w1');
  expect(told).toContain('refit accept autopilot/autopilot --check web');
  expect(told).not.toContain('among the next to start');
  expect(await puppets.signal('accept-w1')).toBeUndefined();

  const accept = ['accept', 'autopilot/autopilot', '--check', 'web'];
  const refused = await refitAs('viewer', ...accept);
  expect(refused.code, refused.stderr).toBe(4);
  const said = await refitAs('approver', ...accept, '--reason', 'the probe is broken');
  expect(said).toMatchObject({ code: 0, stderr: '' });
  await puppets.until(async () => expect(await puppets.signal('accept-w1')).toBeDefined());
  const accepted =
    /the health check web may fail, says refit-approver at \S+Z: the probe is broken/;
  expect(await why('accept-w1')).toMatch(accepted);
  await puppets.says('accept-w1', 'Completed');
  await puppets.until(async () => expect(await puppets.signal('accept-w2')).toBeDefined());
  await puppets.says('accept-w2', 'Completed');
  expect((await puppets.end()).state).toBe('Completed');
  expect(await leader.stop('SIGTERM')).toBe(0);
});
