/** Shows `refit preview -f` as a whole, from the text of a file with several Plans to the lines that it prints. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createNode, installDefinitions } from '../../../sandbox/cluster/objects.ts';
import { startSandboxPlane } from '../../../sandbox/cluster/plane.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import { upgradePolicies } from '../../api/kinds.ts';
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import { MODULES } from '../../dialects/modules.ts';
import { loadClusterConfig } from '../../kube/config/kubeconfig.ts';
import { createClient } from '../../kube/transport/http-client.ts';
import { systemClock } from '../../util/clock.ts';
import { RefitError } from '../../util/errors.ts';
import { showPreview } from './preview-command.ts';

const CONTROL_PLANE = { 'node-role.kubernetes.io/control-plane': 'true' };

const SERVER = `# Server nodes
---
apiVersion: upgrade.cattle.io/v1
kind: Plan
metadata:
  name: server-plan # one after the other
  namespace: system-upgrade
spec:
  concurrency: 1
  cordon: true
  nodeSelector:
    matchExpressions:
      - { key: node-role.kubernetes.io/control-plane, operator: In, values: ["true"] }
  serviceAccountName: system-upgrade
  upgrade: { image: rancher/k3s-upgrade }
  version: v1.33.1+k3s1
`;
const AGENT = `# Agent nodes
apiVersion: upgrade.cattle.io/v1
kind: Plan
metadata: { name: agent-plan, namespace: system-upgrade }
spec:
  concurrency: 2
  nodeSelector:
    matchExpressions:
      - { key: node-role.kubernetes.io/control-plane, operator: DoesNotExist }
  prepare: { args: [prepare, server-plan], image: rancher/k3s-upgrade }
  serviceAccountName: system-upgrade
  upgrade: { image: rancher/k3s-upgrade }
  version: v1.33.1-k3s1
`;

/** Runs the command on a cluster with two server nodes and three agent nodes. */
async function previewOf(
  text: string,
  present: readonly UpgradePolicy[] = [],
  ready = true,
): Promise<{ shown: string; refusal: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-preview-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  const plane = await startSandboxPlane(directory);
  onTestFinished(async () => await plane.stop());
  const kubeconfig = await plane.kubeconfig('admin');
  using client = createClient(await loadClusterConfig({ path: kubeconfig }), { userAgent: 'test' });
  await installDefinitions(client, systemClock);
  for (const name of ['s1', 's2']) await createNode(client, name, CONTROL_PLANE);
  for (const name of ['a1', 'a2', 'a3']) await createNode(client, name, {});
  for (const policy of present) await client.create(upgradePolicies, policy);
  const file = join(directory, 'plans.yaml');
  await writeFile(file, text);
  const lines: string[] = [];
  const size = () => ({ columns: 500, rows: 50 });
  const write = (line: string): void => void lines.push(line);
  const shown = (): string => lines.join('');
  try {
    await showPreview(
      { file: [file], output: 'text', kubeconfig, ready },
      {
        modules: MODULES,
        clock: systemClock,
        output: { write, size, isTerminal: false, hasColours: false },
        abort: new AbortController().signal,
      },
    );
    return { shown: shown(), refusal: '' };
  } catch (error) {
    if (!(error instanceof RefitError)) throw error;
    return { shown: shown(), refusal: error.line.replace(file, 'plans.yaml') };
  }
}

test('a file with the server and the agent Plan of k3s: each is shown with its own batches', async () => {
  const { shown, refusal } = await previewOf(`${SERVER}---\n${AGENT}---\n`);
  expect(refusal).toBe('');
  const [server = '', agent = ''] = shown.split(/(?=Plan system-upgrade\/agent-plan)/);
  expect(server).toContain('Plan system-upgrade/server-plan');
  expect(server).toMatch(/batch 1 +s[12]\n +batch 2 +s[12]\n/);
  expect(server).not.toMatch(/batch \d+ .*\ba[123]\b/);
  expect(agent).toMatch(/batch 1 +a[123], a[123]\n +batch 2 +a[123]\n/);
  expect(agent).not.toMatch(/batch \d+ .*\bs[12]\b/);
});

test('below the plans stands once for each version whether the cluster can take it, unless it is left out', async () => {
  const later = AGENT.replace('v1.33.1-k3s1', 'v1.99.0-k3s1');
  const { shown } = await previewOf(`${SERVER}---\n${later}---\n`);
  expect(shown.match(/^.*ready for v\S+/gm)).toEqual([
    expect.stringMatching(/ready for v1\.33\.1/),
    expect.stringMatching(/^Not ready for v1\.99\.0/),
  ]);
  expect(shown).toMatch(/ {2}blocker {2}API server \S+: it would go from \S+ past/);
  expect(shown).toMatch(/ {2}more {5}refit ready -f \S+/);
  expect((await previewOf(SERVER, [], false)).shown).not.toContain('ready for');
});

test('a mistake in the second Plan is named with its place, and the first one is shown', async () => {
  const wrong = AGENT.replace(
    '  version: v1.33.1-k3s1\n',
    '  postCompleteDelay: soon\n  version: v1.33.1-k3s1\n',
  );
  const { shown, refusal } = await previewOf(`${SERVER}---\n${wrong}---\n`);
  expect(refusal).toMatch(
    /^REFIT_FILE: plans\.yaml: document 2: spec\.postCompleteDelay is invalid, "soon" is not a duration;/,
  );
  expect(shown).toContain('Plan system-upgrade/server-plan');
});

const POLICY = `apiVersion: upgrade.refit.dev/v1alpha1
kind: UpgradePolicy
metadata: { name: nightly }
spec: { waves: [{ count: 1 }, {}] }
`;

test('a policy beside the Plans that cannot be read is a problem', async () => {
  const wrong = await previewOf(`${SERVER}---\n${POLICY.replace('count: 1', 'count: many')}`);
  expect(wrong.refusal).toMatch(/^REFIT_FILE: plans\.yaml: document 2: spec\.waves\[0\]\.count: /);
});

test('a policy with a mistake and no Plan: only the mistake is a problem', async () => {
  const { refusal } = await previewOf(POLICY.replace('count: 1', 'count: 1, settle: 9999h'));
  expect(refusal).toContain('spec.waves[0].settle must be a time');
  expect(refusal).not.toContain('expected a Plan');
});

test.each([
  ['a manifest of hosts', 'version: v1.36.3\nhosts: []\n'],
  ['a manifest of KubeOne', 'apiVersion: kubeone.k8c.io/v1beta2\nkind: KubeOneCluster\n'],
])('%s instead of a Plan: the refusal names refit kubeadm plan', async (_what, text) => {
  const { refusal } = await previewOf(text);
  expect(refusal).toMatch(
    /^REFIT_FILE: plans\.yaml: holds a manifest of hosts, expected a Plan of .*\(`refit kubeadm plan -m`/,
  );
});

test('a manifest of KubeOne beside a Plan is ignored', async () => {
  const kubeOne = 'apiVersion: kubeone.k8c.io/v1beta2\nkind: KubeOneCluster\n';
  expect((await previewOf(`${SERVER}---\n${kubeOne}`)).refusal).toBe('');
});

test('a policy instead of a Plan: the refusal names refit validate', async () => {
  const { refusal } = await previewOf(POLICY.replace('{ waves: [{ count: 1 }, {}] }', '{}'));
  expect(refusal).toMatch(/holds an UpgradePolicy of .*expected a Plan of .*\(`refit validate`/);
});

test('a policy beside the Plans takes part as if it were applied', async () => {
  const without = await previewOf(AGENT);
  expect(without.shown).toMatch(/batch 1 +a[123], a[123]\n +batch 2 +a[123]\n/);
  const { shown, refusal } = await previewOf(`${AGENT}---\n${POLICY}`);
  expect(refusal).toBe('');
  expect(shown).toMatch(
    /wave 1 of the policy\n +batch 1 +a[123]\n +wave 2 of the policy\n +batch 2 +a[123], a[123]\n/,
  );
  expect(shown).toContain(
    'UpgradePolicy nightly covers every plan; it is taken from the file, as if you had applied it\n',
  );
});

test('a policy of the file replaces the one of the same name in the cluster', async () => {
  const present = buildUpgradePolicy('nightly', { plans: [{ name: 'server-plan' }] });
  const { shown } = await previewOf(`${AGENT}---\n${POLICY}`, [present]);
  expect(shown).toContain('UpgradePolicy nightly covers every plan; it is taken from the file');
});

test('a policy in a file whose hook needs a missing namespace: the preview names the namespace and what nobody but the controller knows', async () => {
  const policy = `---
apiVersion: upgrade.refit.dev/v1alpha1
kind: UpgradePolicy
metadata: { name: nightly }
spec:
  hooks:
    - name: flag
      when: BeforeDrain
      timeout: 5m
      job:
        namespace: nowhere
        template: { spec: { containers: [{ name: a, image: busybox }] } }
`;
  const { shown } = await previewOf(`${SERVER}${policy}`);
  expect(shown).toContain(
    'spec.hooks[0].job.namespace: the cluster has no namespace nowhere, so the controller cannot create the Job. Create the namespace before you apply the plan',
  );
  expect(shown).toContain('whether the controller has the right to create the Jobs of the policy');
  expect((await previewOf(SERVER)).shown).not.toContain('the Jobs of the policy');
});
