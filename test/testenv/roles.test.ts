/** Tests on the real API server that each documented user may do what docs/internals/testenv.md says, and nothing else. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CONTROLS_SEAL, UPDATE_SEAL } from '../../src/dialects/capi/plan/seals.ts';
import { ATTEMPT_LABEL } from '../../src/signal/names.ts';
import { KUBERNETES_VERSION } from '../../tools/controlplane/components.ts';
import { kubectl } from '../../tools/controlplane/kubectl.ts';
import { testUnless } from '../support/left-out.ts';
import { WHOLE } from '../support/whole.ts';
import { accessByRules, reviewAccess } from './access-review.ts';
import {
  apply,
  controlPlane,
  expiredKubeconfig,
  installKinds,
  kubectlAs,
  type User,
} from './control-plane.ts';
import { WHY_READS_OTHER_NODES } from './since.ts';

const READ = 'get list watch';
const FOLLOW = 'list watch';
/** The verbs for the controller's own objects, which nobody needs to watch. */
const KEEP = 'get list create patch delete';
const NAMES = ['roles-a', 'roles-b'];

const COLUMNS = [
  'controller',
  'cattle',
  'kubeadm',
  'capi',
  'viewer',
  'operator',
  'controlNode',
  'busy',
] as const;
type Column = (typeof COLUMNS)[number];

/** The verbs of the users that only read. */
const LOOK = { viewer: READ, operator: READ };
const LOOK_ONCE = { viewer: 'list', operator: 'list' };

/** Gives these verbs to the users that drain nodes by themselves, except the controller. */
const drainers = (verbs: string) => ({ kubeadm: verbs, capi: verbs });

/** Gives these verbs to the users that carry out plans. */
const leaders = (verbs: string) => ({
  controller: verbs,
  cattle: verbs,
  kubeadm: verbs,
  capi: verbs,
});

/**
 * Everything that Refit uses and much that it must not use, with the verbs of each user. A user that is not listed has
 * no verbs.
 */
const ACCESS: Readonly<Record<string, Readonly<Partial<Record<Column, string>>>>> = {
  'autopilot.k0sproject.io/plans': {
    controller: `${READ} create update patch delete`,
    ...LOOK,
    operator: `${READ} create patch delete`,
  },
  'autopilot.k0sproject.io/plans/status': { controller: 'update' },
  'autopilot.k0sproject.io/controlnodes': {
    controller: `${READ} update`,
    ...LOOK,
    operator: `${READ} patch`,
  },
  'autopilot.k0sproject.io/controlnodes=roles-a': {
    controller: `${READ} update`,
    ...LOOK,
    operator: `${READ} patch`,
    controlNode: `${READ} create update patch`,
  },
  'autopilot.k0sproject.io/controlnodes=roles-b': {
    controller: `${READ} update`,
    ...LOOK,
    operator: `${READ} patch`,
  },
  'autopilot.k0sproject.io/controlnodes/status=roles-a': { controlNode: 'update' },
  'autopilot.k0sproject.io/controlnodes/status=roles-b': {},
  'autopilot.k0sproject.io/controlnodes=roles-busy': {
    controller: `${READ} update`,
    ...LOOK,
    operator: `${READ} patch`,
    busy: `${READ} create update patch`,
  },
  'autopilot.k0sproject.io/controlnodes/status=roles-busy': { busy: 'update' },
  'autopilot.k0sproject.io/updateconfigs': {
    controller: `${FOLLOW} patch`,
    viewer: 'list',
    operator: 'list patch',
  },
  'upgrade.refit.dev/upgradepolicies': {
    controller: FOLLOW,
    cattle: FOLLOW,
    kubeadm: FOLLOW,
    capi: FOLLOW,
    ...LOOK,
  },
  'upgrade.refit.dev/upgradepolicies/status': {
    controller: 'update',
    cattle: 'update',
    kubeadm: 'update',
    capi: 'update',
  },
  'upgrade.refit.dev/noderollouts@k0s-autopilot': { controller: KEEP, capi: KEEP, ...LOOK },
  'upgrade.refit.dev/noderollouts@system-upgrade': { cattle: KEEP, capi: KEEP, ...LOOK },
  'upgrade.refit.dev/noderollouts@kube-system': { kubeadm: KEEP, capi: KEEP, ...LOOK },
  'upgrade.refit.dev/noderollouts@default': { capi: KEEP, ...LOOK },
  'upgrade.refit.dev/noderollouts/status@k0s-autopilot': { controller: 'patch', capi: 'patch' },
  'upgrade.refit.dev/updatersets': { capi: 'list', operator: 'list' },
  'upgrade.refit.dev/updatersets/status': { capi: 'patch', operator: 'patch' },
  'flowcontrol.apiserver.k8s.io/flowschemas': {
    controller: 'get list',
    viewer: 'get list',
    operator: 'get list',
  },
  'flowcontrol.apiserver.k8s.io/prioritylevelconfigurations': {
    controller: 'get list',
    viewer: 'get list',
    operator: 'get list',
  },
  'k0s.k0sproject.example.com/removedcrds': { controller: 'list', ...LOOK_ONCE },
  'upgrade.cattle.io/plans@system-upgrade': { cattle: READ, ...LOOK, operator: `${READ} patch` },
  'upgrade.cattle.io/plans/status@system-upgrade': { cattle: 'update' },
  'upgrade.cattle.io/plans@default': { ...LOOK, operator: `${READ} patch` },
  'core/nodes': {
    controller: `${READ} update`,
    cattle: `${FOLLOW} update`,
    kubeadm: `${READ} update patch`,
    capi: `${READ} update`,
    ...LOOK,
    operator: `${READ} patch`,
  },
  'core/nodes=roles-b': {
    controller: `${READ} update`,
    cattle: `${FOLLOW} update`,
    kubeadm: `${READ} update patch`,
    capi: `${READ} update`,
    ...LOOK,
    operator: `${READ} patch`,
    busy: `${READ} update`,
  },
  'core/nodes/status': {},
  // The Events on Nodes are in this namespace.
  'core/events@default': {
    controller: 'create patch',
    cattle: 'create patch',
    kubeadm: 'create patch',
    capi: 'create patch',
    ...LOOK_ONCE,
  },
  'core/events@system-upgrade': {
    controller: 'create patch',
    cattle: 'create patch',
    capi: 'create patch',
    ...LOOK_ONCE,
  },
  'core/events@kube-system': {
    controller: 'create patch',
    kubeadm: 'create patch',
    capi: 'create patch',
    ...LOOK_ONCE,
  },
  'coordination.k8s.io/leases@system-upgrade': { cattle: 'create', ...LOOK },
  'coordination.k8s.io/leases@system-upgrade=system-upgrade-controller': {
    cattle: 'get create update',
    ...LOOK,
  },
  'coordination.k8s.io/leases@k0s-autopilot': { controller: 'create', ...LOOK },
  'coordination.k8s.io/leases@k0s-autopilot=k0s-autopilot-controller': {
    controller: 'get create update',
    ...LOOK,
    controlNode: 'get',
    busy: 'get',
  },
  'coordination.k8s.io/leases@kube-node-lease=roles-a': { controller: 'get', ...LOOK },
  'coordination.k8s.io/leases@kube-node-lease=roles-b': {
    controller: 'get',
    ...LOOK,
    busy: 'get create patch',
  },
  'coordination.k8s.io/leases@kube-node-lease': { controller: 'get', ...LOOK },
  'discovery.k8s.io/endpointslices@default=kubernetes': {
    controller: 'get',
    controlNode: 'get',
    busy: 'get',
    kubeadm: 'list',
  },
  'discovery.k8s.io/endpointslices@default': { kubeadm: 'list' },
  'admissionregistration.k8s.io/validatingwebhookconfigurations': { kubeadm: 'list' },
  'admissionregistration.k8s.io/mutatingwebhookconfigurations': { kubeadm: 'list' },
  'coordination.k8s.io/leases@kube-system': { kubeadm: 'create', ...LOOK },
  'coordination.k8s.io/leases@kube-system=kube-scheduler': {
    controller: 'get',
    kubeadm: 'create',
    ...LOOK,
  },
  'coordination.k8s.io/leases@kube-system=refit-kubeadm': { kubeadm: 'get create update', ...LOOK },
  'coordination.k8s.io/leases@refit-system': { ...leaders('create'), ...LOOK },
  'coordination.k8s.io/leases@refit-system=refit-capi-extension': {
    ...leaders('create'),
    capi: 'get create update',
    ...LOOK,
  },
  'coordination.k8s.io/leases@refit-system=disruption': {
    ...leaders('get create update'),
    ...LOOK,
  },
  'core/namespaces': { kubeadm: 'list', capi: 'get' },
  'core/namespaces=kube-system': {
    controller: 'get',
    cattle: 'get',
    kubeadm: 'list',
    capi: 'get',
  },
  'core/pods@default': {
    busy: 'list watch',
    controller: 'list watch',
    ...drainers('list watch'),
    viewer: 'list watch',
    operator: 'list watch',
  },
  'core/pods/eviction@default': { busy: 'create', controller: 'create', ...drainers('create') },
  'core/pods/status@default': {},
  'policy/poddisruptionbudgets@default': { controller: 'list', ...drainers('list'), ...LOOK_ONCE },
  'core/secrets@kube-system': {},
  'core/secrets@kube-system=update-server-token': { controller: 'get' },
  'core/secrets@system-upgrade': {},
  'core/secrets@system-upgrade=SECRET': { cattle: 'list watch' },
  'core/configmaps@default': {},
  'core/configmaps@kube-system': { kubeadm: 'create' },
  'core/configmaps@kube-system=kubeadm-config': { kubeadm: 'get create' },
  'core/configmaps@kube-system=refit-kubeadm': {
    kubeadm: 'get list watch create update',
    ...LOOK,
    operator: `${READ} patch`,
  },
  'cluster.x-k8s.io/machines@default': { capi: 'get list patch' },
  'cluster.x-k8s.io/machinedeployments@default': { capi: 'get patch' },
  'cluster.x-k8s.io/clusters@default': { capi: 'get' },
  'cluster.x-k8s.io/machinedrainrules@default': { capi: 'list' },
  'cluster.x-k8s.io/machinesets@default': {},
  'cluster.x-k8s.io/machines/status@default': {},
  'core/serviceaccounts/token@default': {},
  'batch/jobs@default': { cattle: 'list watch', ...LOOK },
  'batch/jobs@system-upgrade': { cattle: `${READ} create update delete`, ...LOOK },
  'apps/daemonsets@kube-system': {
    busy: 'get',
    controller: 'get list',
    cattle: 'list',
    ...drainers('get list'),
    viewer: 'get',
    operator: 'get',
  },
  'apps/daemonsets@kube-system=kured': {
    busy: 'get',
    ...leaders('get list patch'),
    viewer: 'get',
    operator: 'get',
  },
  'apps/deployments@kube-system=coredns': { kubeadm: 'get' },
  'apps/deployments@kube-system': {},
  'apiextensions.k8s.io/customresourcedefinitions': {},
  'rbac.authorization.k8s.io/clusterroles': {},
  'certificates.k8s.io/certificatesigningrequests': {},
  // The ClusterRole system:public-info-viewer grants this to all users.
  '/readyz': {
    controller: 'get',
    cattle: 'get',
    ...drainers('get'),
    viewer: 'get',
    operator: 'get',
    controlNode: 'get',
    busy: 'get',
  },
  '/readyz/etcd': {},
  '/metrics': {},
};

beforeAll(async () => {
  await installKinds();
  const node = (name: string): object => ({ apiVersion: 'v1', kind: 'Node', metadata: { name } });
  const controlNode = (name: string): object => ({
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'ControlNode',
    metadata: { name },
  });
  const items = NAMES.flatMap((name) => [node(name), controlNode(name)]);
  await apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
});

afterAll(async () => {
  for (const kind of ['nodes', 'controlnodes'])
    await kubectlAs('admin', ['delete', kind, ...NAMES]);
});

test.each([
  ['the controller', 'controller', 'controller'],
  ['the controller of cattle Plans', 'cattle', 'cattle'],
  ['refit kubeadm', 'kubeadm', 'kubeadm'],
  ['the extension for Cluster API', 'capi', 'capi'],
  ['the viewer', 'viewer', 'viewer'],
  ['the operator', 'operator', 'operator'],
  ['the agent on a controller', { controlNode: 'roles-a' }, 'controlNode'],
  [
    'the agent on a controller that runs pods',
    { controlNode: 'roles-busy', node: 'roles-b' },
    'busy',
  ],
] as const)('%s may do exactly what is documented', async (_name, user, column) => {
  const expected = Object.fromEntries(
    Object.entries(ACCESS).map(([target, row]) => [target, row[column] ?? '']),
  );
  const asUser = async (args: readonly string[], input: string) =>
    await kubectlAs(user, args, input);
  expect(await accessByRules(asUser, Object.keys(ACCESS))).toEqual(expected);
  // `accessByRules` compares the rules that the API server lists. `reviewAccess` tests what the API server really
  // answers. It asks for all rights that the user has. Of the rights that the user lacks, it asks for only one in
  // eight.
  const nth = COLUMNS.indexOf(column);
  const asked = Object.entries(expected).filter(
    ([, verbs], i) => WHOLE || verbs !== '' || i % COLUMNS.length === nth,
  );
  const targets = asked.map(([target]) => target);
  expect(await reviewAccess(asUser, targets)).toEqual(Object.fromEntries(asked));
});

const ALLOWED = '';
const FORBIDDEN = 'Forbidden';
const ANNOTATE = ['annotate', '--overwrite'];
const watch = (path: string, name: string): string[] => [
  'get',
  '--raw',
  `${path}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3D${name}`,
];

test.each([
  [
    "reads the leader's lease",
    ['get', 'lease', 'k0s-autopilot-controller', '-n', 'k0s-autopilot'],
    'NotFound',
  ],
  ['reads no other lease there', ['get', 'lease', 'other', '-n', 'k0s-autopilot'], 'Forbidden'],
  ['lists none', ['get', 'leases', '-n', 'k0s-autopilot'], 'Forbidden'],
  ['reads no secret', ['get', 'secret', 'roles-a', '-n', 'k0s-autopilot'], 'Forbidden'],
])('the agent on a worker %s', async (_name, args, outcome) => {
  await kubectlAs('admin', [
    'delete',
    'lease',
    'k0s-autopilot-controller',
    '-n',
    'k0s-autopilot',
    '--ignore-not-found',
  ]);
  const { stderr } = await kubectlAs({ node: 'roles-a' }, args);
  expect(stderr).toContain(outcome);
});

describe.each([
  ['the agent on a worker', { node: 'roles-a' }, 'nodes', '/api/v1/nodes'],
  [
    'the agent on a controller',
    { controlNode: 'roles-a' },
    'controlnodes',
    '/apis/autopilot.k0sproject.io/v1beta2/controlnodes',
  ],
] as const)('%s', (_name, user, kind, path) => {
  const seesOnlyItself = kind === 'nodes' ? testUnless(WHY_READS_OTHER_NODES) : test;
  seesOnlyItself.each([
    ['does not read another', ['get', kind, 'roles-b']],
    ['an agent may not list the objects of all nodes', ['get', kind]],
    ['an agent may not watch the object of another node', watch(path, 'roles-b')],
  ])('%s', async (_case, args) => {
    await expectOutcome(user, args, FORBIDDEN);
  });

  test.each([
    ['reads its own object', ['get', kind, 'roles-a'], ALLOWED],
    ['watches its own object', watch(path, 'roles-a'), ALLOWED],
    ['does not delete its own object', ['delete', kind, 'roles-a'], FORBIDDEN],
    ['does not annotate another', [...ANNOTATE, kind, 'roles-b', 'refit-test=1'], FORBIDDEN],
    ['does not read secrets', ['get', 'secrets', '-A'], FORBIDDEN],
  ])('%s', async (_case, args, outcome) => {
    await expectOutcome(user, args, outcome);
  });

  test.each([
    ['replaces its own object', 'roles-a', ALLOWED],
    ['does not replace another', 'roles-b', FORBIDDEN],
  ])('%s', async (_case, name, outcome) => {
    const { stdout } = await kubectlAs('admin', ['get', kind, name, '-o', 'json']);
    const object = JSON.parse(stdout) as { metadata: { annotations?: Record<string, string> } };
    object.metadata.annotations = { ...object.metadata.annotations, 'refit-test': 'replaced' };
    await expectOutcome(user, ['replace', '-f', '-'], outcome, JSON.stringify(object));
  });
});

test.each([
  'node-restriction.kubernetes.io/tier=secure',
  `${ATTEMPT_LABEL}=uid.2026-11-20T080000Z`,
  `${UPDATE_SEAL}=0123`,
  `${CONTROLS_SEAL}=none`,
  'node-role.kubernetes.io/control-plane=',
])('NodeRestriction is on: a node may not set its label %s', async (label) => {
  await expectOutcome({ node: 'roles-a' }, ['label', 'node', 'roles-a', label], FORBIDDEN);
});

test.each([
  ['viewer', [...ANNOTATE, 'node', 'roles-a', 'refit-test=viewer']],
  ['viewer', ['delete', 'node', 'roles-a']],
  ['operator', ['delete', 'node', 'roles-a']],
  [
    'operator',
    [...ANNOTATE, 'configmap', 'kubeadm-config', '-n', 'kube-system', 'refit-test=operator'],
  ],
  ['operator', ['delete', 'controlnodes.autopilot.k0sproject.io', 'roles-a']],
  ['operator', ['create', '-f', 'deploy/crds/upgrade.refit.dev_upgradepolicies.yaml']],
  ['controller', ['delete', 'node', 'roles-a']],
  ['controller', ['create', 'namespace', 'roles-test']],
] as const)('%s: %j is refused', async (user, args) => {
  await expectOutcome(user, [...args], FORBIDDEN);
});

async function expectOutcome(
  user: User,
  args: readonly string[],
  outcome: string,
  input?: string,
): Promise<void> {
  const { ok, stderr } = await kubectlAs(user, args, input);
  expect({ ok, stderr }).toEqual({
    ok: outcome === ALLOWED,
    stderr: expect.stringContaining(outcome) as string,
  });
}

test('an expired client certificate is refused', async () => {
  const { ok, stderr } = await kubectl(controlPlane().kubectl, await expiredKubeconfig(), [
    'get',
    'nodes',
  ]);
  expect({ ok, stderr }).toEqual({
    ok: false,
    stderr: expect.stringContaining('Unauthorized') as string,
  });
});

test('the server is ready and has the expected version', async () => {
  expect((await kubectlAs('viewer', ['get', '--raw', '/readyz'])).stdout).toBe('ok');
  const { stdout } = await kubectlAs('viewer', ['get', '--raw', '/version']);
  // KUBEBUILDER_ASSETS may have any version.
  const wanted: unknown = process.env['KUBEBUILDER_ASSETS']
    ? expect.any(String)
    : KUBERNETES_VERSION;
  expect((JSON.parse(stdout) as { gitVersion: string }).gitVersion).toEqual(wanted);
});
