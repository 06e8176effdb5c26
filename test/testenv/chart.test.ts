/**
 * Tests the Helm chart and the kustomize bases on the real API server: both install the same objects, and a controller
 * works with its account.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import type { KubeObject } from '../../src/kube/resources.ts';
import { run } from '../../tools/controlplane/run.ts';
import { TO as MACHINE_TO, openMachineCluster } from '../support/capi/machine-cluster.ts';
import { askedBy, writeAccountKubeconfig } from './account.ts';
import { buildTool } from './build-tool.ts';
import { chartNodes } from './chart-nodes.ts';
import {
  apply,
  controlPlane,
  kubeconfigFor,
  kubectlAs,
  ON_SERVER,
  restoreRoles,
} from './control-plane.ts';
import { expectHelm, helm } from './helm.ts';

const CHART = 'deploy/chart';
const NAMESPACE = 'refit-system';
/** The files with roles that the chart contains as well. */
const ROLES = ['rbac.yaml', 'rbac-cattle.yaml', 'rbac-capi.yaml'];
const POLICIES = 'upgradepolicies.upgrade.refit.dev';
const DIALECTS = ['k0s', 'cattle', 'capi', 'kubeadm'];
/** The values without a default. They determine which program runs on nodes, so an administrator must choose them. */
const REQUIRED = ['payload', 'checksum'].map((name) => {
  const suffix = name === 'payload' ? '' : '.sha256';
  return `--set-string=capi.${name}Url=https://mirror.example.com/\\{version\\}/\\{os\\}-\\{arch\\}/k0s${suffix}`;
});
const MINUTES = 60_000;

let directory = '';

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-chart-'));
  await buildTool('helm');
}, 15 * MINUTES);

afterAll(async () => await rm(directory, { recursive: true }));

const helmed = async (...args: readonly string[]): Promise<string> =>
  await expectHelm(directory, args);

function only(dialect: string): string[] {
  return DIALECTS.map((each) => `--set=${each}.enabled=${each === dialect}`).concat(REQUIRED);
}

/** The rendered objects, by tool and arguments. Several tests read the same objects and do not change them. */
const rendered = new Map<string, Promise<readonly KubeObject[]>>();

async function once(key: string, render: () => Promise<string>): Promise<readonly KubeObject[]> {
  const found = rendered.get(key) ?? render().then(objectsIn);
  rendered.set(key, found);
  return await found;
}

async function templated(...args: readonly string[]): Promise<readonly KubeObject[]> {
  const all = ['template', 'refit', CHART, '--namespace', NAMESPACE, ...args];
  return await once(`helm ${all.join(' ')}`, async () => await helmed(...all));
}

async function kustomized(folder: string): Promise<readonly KubeObject[]> {
  return await once(`kustomize ${folder}`, async () => {
    const { ok, stdout, stderr } = await run(controlPlane().kubectl, ['kustomize', folder]);
    expect({ ok, stderr }).toEqual({ ok: true, stderr: '' });
    return stdout;
  });
}

function objectsIn(text: string): KubeObject[] {
  return parseAllDocuments(text, { version: '1.1' })
    .map((document) => document.toJS() as KubeObject | null)
    .filter((object) => object !== null);
}

test('the role of system-upgrade-controller names the Secrets of the Plans', async () => {
  const objects = await templated(...only('cattle'), '--set=cattle.planSecrets={one,two}');
  const rules = objects.flatMap(
    (object) => (object as { rules?: { resources?: string[] }[] }).rules ?? [],
  );
  const found = rules.filter(({ resources }) => resources?.includes('secrets'));
  expect(found).toMatchObject([{ resourceNames: ['one', 'two'], verbs: ['list', 'watch'] }]);
});

const nameOf = ({ kind, metadata }: KubeObject): string =>
  `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;

/**
 * Removes the parts that only one of the two tools writes: labels of the object, and the annotation that tells Helm to
 * keep definitions.
 */
function compared(objects: readonly KubeObject[]): KubeObject[] {
  return objects
    .map(({ metadata: { labels: _labels, annotations: _annotations, ...metadata }, ...rest }) => ({
      ...rest,
      metadata,
    }))
    .toSorted((a, b) => nameOf(a).localeCompare(nameOf(b)));
}

describe.each(DIALECTS)('%s', (dialect) => {
  test('Helm and kustomize install the same', async () => {
    const both = await Promise.all([
      templated(...only(dialect)),
      kustomized(`deploy/kustomize/${dialect}`),
    ]);
    const [fromHelm, fromKustomize] = both.map(compared);
    expect(fromHelm?.length).toBeGreaterThan(5);
    // Helm makes the namespace of a release itself.
    expect(fromHelm).toEqual(
      fromKustomize?.filter((object) => nameOf(object) !== `Namespace /${NAMESPACE}`),
    );
  });

  test('the API server takes every object', async () => {
    const objects = await kustomized(`deploy/kustomize/${dialect}`);
    const spaces = objects.filter(({ kind }) => kind === 'Namespace');
    for (const space of spaces) await apply(JSON.stringify(space));
    const text = objects.map((object) => stringify(object, { version: '1.1' })).join('---\n');
    const { ok, stderr, stdout } = await kubectlAs(
      'admin',
      [...ON_SERVER, '--dry-run=server'],
      text,
    );
    // There must be no warning, for example about a Deployment that violates the Pod Security Standard of its
    // namespace. The warning about definitions that kubectl did not create does not count.
    const warnings = stderr
      .split('\n')
      .filter((line) => line !== '' && !line.includes('is missing the kubectl.kubernetes.io'));
    expect({ ok, warnings }).toEqual({ ok: true, warnings: [] });
    expect(stdout.trim().split('\n')).toHaveLength(objects.length);
  });

  test('only its own definitions', async () => {
    const kinds = (await templated(...only(dialect))).filter(
      ({ kind }) => kind === 'CustomResourceDefinition',
    );
    const groups = new Set(kinds.map(({ metadata }) => metadata.name.replace(/^[^.]*\./, '')));
    const own: Readonly<Record<string, string[]>> = {
      k0s: ['autopilot.k0sproject.io'],
      cattle: ['upgrade.cattle.io'],
    };
    expect([...groups].toSorted()).toEqual([...(own[dialect] ?? []), 'upgrade.refit.dev']);
  });
});

test.each([
  ['k0s', 'k0s'],
  ['system-upgrade-controller', 'cattle'],
  ['cluster-api', 'capi'],
  ['production', 'k0s'],
])(
  'the values of examples/chart/%s.yaml install what %s needs, by the path that charts usually have',
  async (file, dialect) => {
    const values = ['--values', `examples/chart/${file}.yaml`, '--namespace', NAMESPACE];
    const objects = objectsIn(await helmed('template', 'refit', 'charts/refit', ...values));
    const wanted = (await templated(...only(dialect))).map(nameOf);
    expect(objects.map(nameOf)).toEqual(expect.arrayContaining(wanted));
    expect(JSON.stringify(objects)).toMatch(/"image":"registry\.example\.com\/refit[:@]/);
    const text = await readFile(`examples/chart/${file}.yaml`, 'utf8');
    expect(
      await helmed('lint', '--strict', 'charts/refit', '--values', `examples/chart/${file}.yaml`),
    ).toContain('0 chart(s) failed');
    expect(text).toContain(`--values examples/chart/${file}.yaml`);
  },
);

test.each([true, false])(
  'definitions and namespaces, and so all Plans, stay after `helm uninstall`: %s',
  async (keep) => {
    const objects = await templated('--set=cattle.enabled=true', `--set=crds.keep=${keep}`);
    const kept = objects.filter(
      ({ metadata }) => metadata.annotations?.['helm.sh/resource-policy'] === 'keep',
    );
    const holders = objects.filter(
      ({ kind }) => kind === 'Namespace' || kind === 'CustomResourceDefinition',
    );
    expect(holders.map(nameOf)).toEqual(
      expect.arrayContaining(['Namespace /k0s-autopilot', 'Namespace /system-upgrade']),
    );
    expect(kept).toEqual(keep ? holders : []);
  },
);

test('the admission policies of the chart are those of deploy/', async () => {
  const objects = await templated(
    '--set=admission.signals=true',
    '--set=admission.k0sPlans=true',
    '--set=admission.decisions=true',
  );
  const policies = objects.filter(({ kind }) => kind?.startsWith('ValidatingAdmission'));
  const files = [
    'admission-policy.yaml',
    'admission-policy-k0s-plans.yaml',
    'admission-policy-decisions.yaml',
  ];
  const texts = await Promise.all(
    files.map(async (file) => await readFile(`deploy/${file}`, 'utf8')),
  );
  expect(compared(policies)).toEqual(compared(texts.flatMap(objectsIn)));
});

test('automatic updates: the rights of deploy/rbac-updates.yaml for the account', async () => {
  const without = new Set((await templated()).map(nameOf));
  const added = (await templated('--set=k0s.updates=true')).filter(
    (object) => !without.has(nameOf(object)),
  );
  expect(compared(added)).toEqual(compared(await kustomized('deploy/chart/manifests/updates')));
  const subjects = added.flatMap(
    ({ subjects: all = [] }: KubeObject & { subjects?: { name: string }[] }) => all,
  );
  expect(new Set(subjects.map(({ name }) => name))).toEqual(
    new Set(['refit-controller', 'refit-viewer', 'refit-operator']),
  );
});

test('all workload clusters: the rights of deploy/rbac-capi-clusters.yaml for the account, and the option', async () => {
  const capi = ['--set=capi.enabled=true', ...REQUIRED];
  const without = new Set((await templated(...capi)).map(nameOf));
  const all = await templated(...capi, '--set=capi.workloadClusters=true');
  const added = all.filter((object) => !without.has(nameOf(object)));
  expect(compared(added)).toEqual(
    compared(await kustomized('deploy/chart/manifests/workload-clusters')),
  );
  expect(JSON.stringify(added)).toContain('"name":"refit-capi","namespace":"refit-system"');
  expect(JSON.stringify(all)).toContain('"--workload-clusters"');
});

test('a Certificate for cert-manager: as with kustomize, and for the Secret that is mounted', async () => {
  const capi = ['--set=capi.enabled=true', ...REQUIRED];
  const certificates = async (...more: string[]): Promise<KubeObject[]> =>
    (await templated(...capi, ...more)).filter(({ kind }) => kind === 'Certificate');
  expect(await certificates()).toEqual([]);
  const issuer = '--set=capi.issuer=cluster-api-hooks';
  const made = await kustomized('deploy/chart/manifests/cert-manager');
  expect(made).toMatchObject([{ spec: { dnsNames: ['refit-capi-extension.refit-system.svc'] } }]);
  expect(compared(await certificates(issuer))).toEqual(compared(made));
  const other = ['--set=capi.issuer=other', '--set=capi.secrets.refit-capi-extension-tls=mine'];
  expect(await certificates(...other)).toMatchObject([
    { spec: { secretName: 'mine', issuerRef: { name: 'other' } } },
  ]);
});

test('Helm and kustomize install the same DaemonSet of agents, and the API server accepts it', async () => {
  const args = ['--set=agent.daemonSet=true'];
  const added = (await templated(...args)).filter(({ kind }) => kind === 'DaemonSet');
  expect(compared(added)).toEqual(compared(await kustomized('deploy/chart/manifests/agent')));
  const { ok, stderr } = await kubectlAs(
    'admin',
    [...ON_SERVER, '--dry-run=server'],
    JSON.stringify(added[0]),
  );
  expect({ ok, stderr }).toEqual({ ok: true, stderr: '' });
});

test('monitoring: Helm and kustomize install the same', async () => {
  const without = new Set((await templated()).map(nameOf));
  const parts = ['serviceMonitor', 'rules', 'dashboard'].map(
    (name) => `--set=monitoring.${name}=true`,
  );
  const added = (await templated(...parts)).filter((object) => !without.has(nameOf(object)));
  expect(compared(added)).toEqual(compared(await kustomized('deploy/chart/manifests/monitoring')));
  expect(new Set(added.map(({ kind }) => kind))).toEqual(
    new Set(['ConfigMap', 'PrometheusRule', 'ServiceMonitor']),
  );
});

test('helm lint finds nothing', async () => {
  expect(await helmed('lint', '--strict', CHART)).toContain('0 chart(s) failed');
});

test.each<[string, string[], RegExp]>([
  ['no dialect', ['--set=k0s.enabled=false'], /nothing is enabled: set k0s.enabled/],
  ['no address of downloads', ['--set=capi.enabled=true'], /capi.payloadUrl is not set/],
  ['a value that does not exist', ['--set=k0s.replica=3'], /replica/],
  ['no replica', ['--set=k0s.replicas=0'], /replicas/],
  ['a key that is left empty', ['--set-json=viewers=null'], /missing property 'viewers'/],
  [
    'a number that is left empty',
    ['--set-json=k0s.replicas=null'],
    /at '\/k0s': missing property 'replicas'/,
  ],
  [
    'a list that is left empty',
    ['--set-json=networkPolicy.egressPorts=null'],
    /missing property 'egressPorts'/,
  ],
  [
    'a budget that is no number',
    ['--set=podDisruptionBudget.maxUnavailable=1abc'],
    /maxUnavailable/,
  ],
  [
    'a budget that blocks its own drain',
    ['--set=podDisruptionBudget.maxUnavailable=0'],
    /podDisruptionBudget/,
  ],
  [
    'one checksum for all versions',
    ['--set=capi.checksumUrl=https://mirror.example.com/k0s.sha256'],
    /checksumUrl/,
  ],
  ['an option that is none', ['--set=k0s.extraArgs={debug}'], /extraArgs/],
  [
    'capi elsewhere',
    ['--set=capi.enabled=true', ...REQUIRED, '--namespace=other'],
    /found other: use --namespace/,
  ],
])('%s: refused with the field', async (_what, args, message) => {
  const { ok, stderr } = await helm(directory, [
    'template',
    'refit',
    CHART,
    '--namespace',
    NAMESPACE,
    ...args,
  ]);
  expect({ ok, stderr }).toEqual({ ok: false, stderr: expect.stringMatching(message) as string });
});

test.each([
  ['viewers', 'refit-operator'],
  ['operators', 'refit-viewer'],
])('%s that are nobody get no right', async (people, left) => {
  const objects = await templated('--set=cattle.enabled=true', `--set-json=${people}=[]`);
  const all = objects as readonly (KubeObject & {
    subjects?: readonly { kind: string; name: string }[];
  })[];
  const users = all.flatMap(({ subjects }) => subjects ?? []).filter(({ kind }) => kind === 'User');
  expect(new Set(users.map(({ name }) => name))).toEqual(new Set([left]));
});

test('a variable takes the place of one that the chart sets', async () => {
  const variable = 'SYSTEM_UPGRADE_CONTROLLER_LEADER_ELECT';
  const objects = await templated(...only('cattle'), `--set-string=cattle.env.${variable}=false`);
  const found = objects.find(({ kind }) => kind === 'Deployment') as unknown as {
    spec: { template: { spec: { containers: [{ env: { name: string }[] }] } } };
  };
  const { env } = found.spec.template.spec.containers[0];
  expect(env.filter(({ name }) => name === variable)).toEqual([{ name: variable, value: 'false' }]);
  expect(env).toHaveLength(4);
});

test('labels of pods and annotations of service accounts: those of the chart win, those of the user are added', async () => {
  const objects = await templated(
    '--set=podLabels.team=platform',
    '--set=podLabels.app\\.kubernetes\\.io/name=other',
    '--set=serviceAccount.annotations.example\\.com/role=refit',
  );
  const deployment = objects.find(({ kind }) => kind === 'Deployment') as unknown as {
    spec: { template: { metadata: { labels: Record<string, string> } } };
  };
  expect(deployment.spec.template.metadata.labels).toMatchObject({
    team: 'platform',
    'app.kubernetes.io/name': 'refit',
  });
  const accounts = objects.filter(({ kind }) => kind === 'ServiceAccount');
  expect(accounts.length).toBeGreaterThan(0);
  for (const { metadata } of accounts)
    expect(metadata.annotations).toMatchObject({ 'example.com/role': 'refit' });
});

test('values reach the pods', async () => {
  const args = ['repository=registry.example.com/refit', 'digest=sha256:' + 'a'.repeat(64)].map(
    (it) => `--set=image.${it}`,
  );
  const objects = await templated(
    ...args,
    '--set=k0s.replicas=3',
    '--set=k0s.extraArgs={--log-level=debug}',
  );
  const found = objects.find(({ kind }) => kind === 'Deployment');
  expect(found).toMatchObject({
    spec: {
      replicas: 3,
      template: {
        spec: {
          containers: [
            {
              image: `registry.example.com/refit@sha256:${'a'.repeat(64)}`,
              args: ['controller', '--health-address=:8080', '--log-level=debug'],
            },
          ],
        },
      },
    },
  });
});

test('on control planes only, when asked', async () => {
  const found = (await templated('--set=placement=Required')).find(
    ({ kind }) => kind === 'Deployment',
  );
  const term = {
    matchExpressions: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists' }],
  };
  const nodeAffinity = {
    requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] },
  };
  expect(found).toMatchObject({ spec: { template: { spec: { affinity: { nodeAffinity } } } } });
  expect(JSON.stringify(found)).not.toContain('preferredDuring');
});

describe('installed', () => {
  const release = (...args: readonly string[]): string[] => [...args, '--namespace', NAMESPACE];
  beforeAll(async () => {
    // Removes the roles, as in a cluster without Refit. The namespaces and the account of the original may exist
    // already.
    const texts = await Promise.all(
      ROLES.map(async (file) => await readFile(`deploy/${file}`, 'utf8')),
    );
    const kept = ['Namespace', 'ServiceAccount'];
    const documents = texts.flatMap((text) => parseAllDocuments(text));
    const roles = documents
      .filter((document) => !kept.includes(String(document.get('kind'))))
      .join('');
    await kubectlAs('admin', ['delete', '-f', '-'], roles);
    await apply(await readFile('deploy/chart/manifests/base/namespace.yaml', 'utf8'));
    const kubeconfig = ['--kubeconfig', await kubeconfigFor('admin')];
    await apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: chartNodes() }));
    // Simulates a first attempt without --namespace. Its definitions stay after the uninstall, and still name the
    // namespace of that attempt.
    await kubectlAs('admin', ['delete', '--ignore-not-found', 'crd', POLICIES]);
    await helmed('install', 'refit', CHART, '--namespace', 'default', ...kubeconfig);
    await helmed('uninstall', 'refit', '--namespace', 'default', '--wait', ...kubeconfig);
    const values = ['nodeSelector.pool=chart', 'cattle.enabled=true', 'capi.enabled=true'].map(
      (it) => `--set=${it}`,
    );
    await helmed('install', 'refit', CHART, ...release(...values, ...REQUIRED), ...kubeconfig);
  });

  afterAll(async () => {
    await helmed(
      'uninstall',
      'refit',
      ...release('--wait', '--kubeconfig', await kubeconfigFor('admin')),
    );
    await kubectlAs('admin', ['delete', 'namespace', NAMESPACE]);
    await kubectlAs('admin', ['delete', 'nodes', '-l', 'pool=chart']);
    await restoreRoles();
  });

  test('all pods pass the Pod Security Standard `restricted`, and run on the control plane, though it is only one', async () => {
    const hosts = async (): Promise<string[]> => {
      const columns = '-ojsonpath={.items[*].spec.nodeName}';
      const { stdout } = await kubectlAs('admin', ['get', 'pods', '-n', NAMESPACE, columns]);
      return stdout.split(' ');
    };
    await expect
      .poll(hosts, { timeout: MINUTES, interval: 250 })
      .toEqual(Array.from({ length: 4 }, () => 'chart-cp'));
  });

  test('definitions of a release of this name in another namespace are left as they are', async () => {
    const columns = String.raw`-ojsonpath={.metadata.annotations.meta\.helm\.sh/release-namespace}`;
    expect((await kubectlAs('admin', ['get', 'crd', POLICIES, columns])).stdout).toBe('default');
  });

  test('definitions and the namespace of the Lease are there', async () => {
    const names = [
      'plans.autopilot.k0sproject.io',
      'controlnodes.autopilot.k0sproject.io',
      POLICIES,
    ];
    expect((await kubectlAs('admin', ['get', 'crd', ...names])).stderr).toBe('');
    expect((await kubectlAs('admin', ['get', 'namespace', 'k0s-autopilot'])).stderr).toBe('');
  });

  test('the extension for Cluster API updates a Machine with the rights of its account and no other', async () => {
    const kubeconfig = join(directory, 'refit-capi.yaml');
    await writeAccountKubeconfig(kubeconfig, NAMESPACE, 'refit-capi');
    await using scene = await openMachineCluster({ workers: 1, kubeconfig });
    await scene.whenCallable('h2');
    await scene.update('worker1', scene.manager('h2'));
    expect(await scene.cluster.hosts[0]?.version()).toBe(MACHINE_TO);
    const asked = await askedBy(NAMESPACE, 'refit-capi');
    expect(asked.length).toBeGreaterThan(10);
    expect(asked.filter((line) => line.startsWith('forbid'))).toEqual([]);
  });
});
