/** Tests `refit ready` on a real control plane: it finds planted faults, writes nothing, and says what the user may not read. */
import { readFile } from 'node:fs/promises';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { componentRights } from '../../src/cmd/component-rights.ts';
import { MODULES } from '../../src/dialects/modules.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import type { ReadyReport } from '../../src/ready/finding.ts';
import { simulatedNode } from '../../tools/controlplane/simulated-nodes.ts';
import { defineKinds } from '../support/ready/define-kinds.ts';
import { auditedSince, endOfAudit } from './audit.ts';
import { apply, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { runRefit } from './refit-process.ts';

const NODE = 'ready-w1';
const TARGET = 'v1.37.0';
/** The control plane may be several minor versions older than the target, which is a blocker of its own. */
const ANY_SERVER = ['--accept', 'versions=any control plane serves this test'];

/** The definitions of kinds that this file created. */
const defined: string[] = [];

afterAll(async () => {
  if (defined.length > 0) await kubectlAs('admin', ['delete', 'crd', ...defined]);
});

interface Asked {
  readonly code: number | null;
  readonly report: ReadyReport;
}

async function ask(...flags: string[]): Promise<Asked> {
  const kubeconfig = await kubeconfigFor('admin');
  const words = ['ready', '--kubeconfig', kubeconfig, '--to', TARGET, '-o', 'json'];
  const { code, stdout, stderr } = await runRefit(...words, ...ANY_SERVER, ...flags);
  expect(stderr).toEqual([]);
  return { code, report: JSON.parse(stdout.join('\n')) as ReadyReport };
}

async function planted(...objects: object[]): Promise<void> {
  await apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
  onTestFinished(async () => {
    const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
    await kubectlAs('admin', ['delete', '--ignore-not-found', '--wait=false', '-f', '-'], list);
  });
}

const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'ready' } };
const node = {
  ...simulatedNode(NODE),
  metadata: {
    ...simulatedNode(NODE).metadata,
    annotations: {
      'kwok.x-k8s.io/node': 'fake',
      'k3s.io/node-args': JSON.stringify(['agent', '--kubelet-arg=containerd=/run/x']),
    },
  },
};
const webhook = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'ready' },
  webhooks: [
    {
      name: 'ready.example.com',
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      failurePolicy: 'Fail',
      // No other test has a namespace with this label, so no pod needs the webhook.
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'ready' } },
      clientConfig: { service: { name: 'none', namespace: 'ready' } },
      rules: [
        { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
      ],
    },
  ],
};
const configuration = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'kubeadm-config', namespace: 'kube-system' },
  data: {
    ClusterConfiguration: 'apiServer: {extraArgs: {feature-gates: "SidecarContainers=true"}}',
  },
};

test('planted faults are found with their objects, and nothing is written', async () => {
  await planted(namespace, node, webhook, configuration);
  const place = await endOfAudit();
  const { code, report } = await ask();
  expect(code).toBe(1);
  const blockers = report.findings.filter(({ state }) => state === 'blocker');
  expect(blockers).toEqual([
    expect.objectContaining({ check: 'settings', object: `Node ${NODE}` }),
    expect.objectContaining({ check: 'settings', object: 'ConfigMap kube-system/kubeadm-config' }),
    expect.objectContaining({ check: 'webhooks', object: 'ValidatingWebhookConfiguration ready' }),
  ]);
  const requests = await auditedSince(place, 'refit-ready');
  expect(requests.length).toBeGreaterThan(10);
  // The API calls a question about rights a creation, and stores nothing.
  const writes = requests.filter(
    ({ verb, objectRef }) =>
      !['get', 'list'].includes(verb) && objectRef?.resource !== 'subjectaccessreviews',
  );
  expect(writes).toEqual([]);
});

test('an accepted check is a warning with its reason, and the exit code follows the other checks', async () => {
  await planted(namespace, configuration);
  const { code, report } = await ask('--accept', 'settings=the flag goes next week');
  expect(code).toBe(0);
  expect(report.findings).toContainEqual(
    expect.objectContaining({
      check: 'settings',
      state: 'warning',
      accepted: 'the flag goes next week',
    }),
  );
});

test('a user without rights gets no answer that is ok, and each check says what it may not read', async () => {
  const { code, report } = await ask('--as', 'jane');
  expect(code).toBe(0);
  expect(report.findings.filter(({ state }) => state === 'ok')).toEqual([]);
  const checks = new Set(report.findings.map(({ check }) => check));
  expect([...checks]).toHaveLength(9);
  expect(report.findings.filter(({ state }) => state === 'unknown').length).toBeGreaterThan(9);
  expect((await ask('--as', 'jane', '--strict')).code).toBe(1);
});

/** A Node of a Cluster, with a pod that its budget keeps there. Only the Machine could limit the drain. */
const ofCluster = [
  {
    ...node,
    metadata: {
      ...node.metadata,
      annotations: {
        ...node.metadata.annotations,
        'cluster.x-k8s.io/cluster-name': 'blue',
        'cluster.x-k8s.io/cluster-namespace': 'ready',
      },
    },
  },
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'ready-held', namespace: 'default', labels: { app: 'ready-held' } },
    spec: {
      nodeName: NODE,
      containers: [{ name: 'c', image: 'none' }],
      // No kubelet ends the pod.
      terminationGracePeriodSeconds: 0,
    },
  },
  {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'ready-held', namespace: 'default' },
    spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'ready-held' } } },
  },
];

/** A volume of Longhorn and a virtual machine of KubeVirt that only a setting of its product explains. */
const operated = [
  {
    apiVersion: 'longhorn.io/v1beta2',
    kind: 'Volume',
    metadata: { name: 'ready', namespace: 'default' },
    spec: { numberOfReplicas: 1 },
    status: { state: 'attached', robustness: 'healthy' },
  },
  {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'ready', namespace: 'default' },
    spec: {},
  },
];

test.each([
  ['a viewer', 'rita'],
  ['the controller', 'refit-controller'],
  ['the controller for kubeadm', 'refit-kubeadm'],
])(
  '%s with the role of refit ready gets an answer about every kind, also those of other products',
  async (_title, user) => {
    const { signal } = new AbortController();
    using client = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
    defined.push(...(await defineKinds(client, signal)));
    const rights = await readFile('deploy/rbac-ready.yaml', 'utf8');
    await apply(rights);
    // The rights would let the leaders of later files do what these files forbid them.
    onTestFinished(async () => {
      await kubectlAs('admin', ['delete', '--ignore-not-found', '-f', '-'], rights);
    });
    const bindings = ['refit-ready', 'refit-viewer'].map((name) => ({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: `ready-${user}-${name}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
    }));
    await planted(...bindings, ...ofCluster, webhook, ...operated);
    const { report } = await ask('--as', user);
    const lacking = report.findings.filter(({ message }) => message.includes('you may not'));
    expect(lacking).toEqual([]);
    expect(report.findings).toContainEqual(
      expect.objectContaining({ check: 'operators', object: 'Volume default/ready' }),
    );
    expect(report.findings).toContainEqual(
      expect.objectContaining({
        check: 'drains',
        message: expect.stringContaining(
          'unless its Machine has a limit (it is in the management cluster, which --cluster reads)',
        ) as unknown,
      }),
    );
  },
);

test('an account that lacks rights of its component is a blocker, and the usual account has them all', async () => {
  const pod = (name: string, serviceAccountName: string): object => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'refit-system',
      labels: {
        'app.kubernetes.io/name': 'refit',
        'app.kubernetes.io/component': 'refit-controller',
      },
    },
    spec: {
      serviceAccountName,
      automountServiceAccountToken: false,
      // No scheduler places the pod, and no kubelet runs it.
      schedulingGates: [{ name: 'refit.dev/never' }],
      containers: [{ name: 'controller', image: 'none' }],
    },
  });
  const account = (name: string): object => ({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name, namespace: 'refit-system' },
  });
  // The roles are those of the API server, and the bindings have names of their own, because other tests use the usual ones.
  const [{ manifests } = { manifests: [] }] = componentRights(MODULES);
  const bindings = manifests
    .filter(({ kind = '' }) => kind.endsWith('Binding'))
    .map((each) => ({
      ...each,
      metadata: { ...each.metadata, name: `ready-${each.metadata.name}` },
    }));
  await planted(account('refit-controller'), account('poor'), ...bindings);
  await planted(pod('ready-usual', 'refit-controller'), pod('ready-poor', 'poor'));
  const { report } = await ask();
  const rights = report.findings.filter(({ object = '' }) => object.startsWith('ServiceAccount'));
  expect(rights).toEqual([
    expect.objectContaining({
      check: 'ground',
      state: 'blocker',
      object: 'ServiceAccount refit-system/poor',
      message: expect.stringContaining('rights that this release needs: ') as unknown,
    }),
  ]);
});

test.each([
  [['--to', 'soon'], '--to must be a version such as v1.37 or v1.37.2+k0s.0, found "soon"'],
  [
    ['--to', 'v1.37', '--accept', 'everything'],
    '--accept must be CHECK=REASON with one of the checks',
  ],
  [['--to', 'v1.37', '--accept', 'room='], 'and a reason, found "room="'],
])('the flags %j are refused before anything is read', async (flags, message) => {
  const { code, stderr } = await runRefit('ready', ...flags);
  expect(code).toBe(2);
  expect(stderr.join(' ')).toContain(message);
});
