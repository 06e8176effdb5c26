/** Tests the status of UpgradePolicies on a real API server, with the rights of the documented users. */

import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { plans } from '../../src/api/autopilot/plan.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import { policyController } from '../../src/engine/policy/policy-controller.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { EVERY_CONTROLLER } from '../../src/kube/job-namespaces.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import { runController } from '../../src/runtime/run-controller.ts';
import { systemClock } from '../../src/util/clock.ts';
import { apply, kubeconfigFor, kubectlAs } from './control-plane.ts';

const PLURAL = 'upgradepolicies';
const policy = (name: string, spec: string): string => `
apiVersion: upgrade.refit.dev/v1alpha1
kind: UpgradePolicy
metadata: {name: ${name}}
spec: ${spec}
`;
const PLAN = `
apiVersion: autopilot.k0sproject.io/v1beta2
kind: Plan
metadata: {name: policy-test}
spec: {id: a, timestamp: now, commands: []}
`;

const stop = new AbortController();
let client: KubeClient;
let running: Promise<unknown>;

beforeAll(async () => {
  for (const kind of ['upgrade.refit.dev_upgradepolicies', 'autopilot.k0sproject.io_plans'])
    await apply(await readFile(`deploy/crds/${kind}.yaml`, 'utf8'));
  client = createClient(await loadClusterConfig({ path: await kubeconfigFor('controller') }));
  const informers = [
    createInformer(client, upgradePolicies),
    createInformer(client, plans),
  ] as const;
  const [policies, planned] = informers;
  const controller = policyController({
    writer: client,
    clock: systemClock,
    policies,
    jobs: EVERY_CONTROLLER,
    plans: { autopilot: planned },
    effects: {},
    isPlan: () => true,
    plansAmong: (dialect, objects) => objects.map(({ metadata: { name } }) => ({ dialect, name })),
  });
  const following = informers.map(async (informer) => await informer.run(stop.signal));
  await Promise.all(informers.map(async (informer) => await informer.whenSynced()));
  running = Promise.all([runController(controller, stop.signal), ...following]);
});

afterAll(async () => {
  stop.abort();
  await running;
  client.close();
  await kubectlAs('admin', [
    'delete',
    `plans.autopilot.k0sproject.io/policy-test`,
    '--ignore-not-found',
  ]);
  await kubectlAs('admin', ['delete', PLURAL, '--all']);
});

async function eventually(check: () => Promise<void>): Promise<void> {
  await vi.waitFor(check, { timeout: 150_000, interval: 200 });
}

/** The columns of `kubectl get` for the policy. */
async function shown(name: string, ...more: readonly string[]): Promise<string[]> {
  const { stdout } = await kubectlAs('viewer', ['get', PLURAL, name, '--no-headers', ...more]);
  return stdout.trim().split(/ {2,}/);
}

test('the status says whether a policy is valid, what it covers, and what is wrong with it', async () => {
  await apply(policy('policy-test', '{plans: [{name: policy-test}], paused: true}'));
  await eventually(async () =>
    expect((await shown('policy-test')).slice(1, 4)).toEqual(['True', 'true', '[]']),
  );
  await apply(PLAN);
  await eventually(async () =>
    expect((await shown('policy-test')).at(-2)).toBe('["autopilot/policy-test"]'),
  );

  await apply(
    policy(
      'policy-test',
      '{plans: [{name: policy-test}], windows: [{start: "22:00", length: 4h, timeZone: Nowhere}]}',
    ),
  );
  await eventually(async () => expect((await shown('policy-test'))[1]).toBe('False'));
  expect((await shown('policy-test', '-o', 'wide')).join(' ')).toContain(
    'UpgradePolicy policy-test: spec.windows[0].timeZone must be a time zone such as Europe/Berlin',
  );
});

test('of two policies for the same plan the second says that the first counts, and counts when that is deleted', async () => {
  await apply(policy('policy-test-b', '{plans: [{name: policy-test}]}'));
  const conflicted = '-o=jsonpath={.status.conditions[?(@.type=="Conflicted")].message}';
  await eventually(async () =>
    expect(await shown('policy-test-b', conflicted)).toEqual([
      'ignored for plans with name policy-test: UpgradePolicy policy-test has the same entry, and its name comes first in alphabetical order',
    ]),
  );
  await kubectlAs('admin', ['delete', PLURAL, 'policy-test']);
  await eventually(async () =>
    expect((await shown('policy-test-b')).at(-2)).toBe('["autopilot/policy-test"]'),
  );
});

test('an order of what is no label is refused with what would be one', async () => {
  const { stderr } = await kubectlAs(
    'admin',
    ['apply', '-f', '-'],
    policy('policy-test', '{order: [zone, "a in (b)"]}'),
  );
  expect(stderr).toMatch(
    /spec\.order\[1\]: .*: must be the key of a label such as topology.kubernetes.io\/zone, or key=value/,
  );
});

test('a misspelt member is refused by kubectl, not dropped', async () => {
  const { ok, stderr } = await kubectlAs(
    'admin',
    ['apply', '-f', '-'],
    policy('policy-test', '{failureBudgets: 3}'),
  );
  expect(ok).toBe(false);
  expect(stderr).toContain('unknown field "spec.failureBudgets"');
});
