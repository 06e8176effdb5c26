/**
 * Tests `refit install`, `refit uninstall` and `refit credentials` on a real API server of its own, because these
 * commands replace and remove its roles.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import {
  clusterScoped,
  customResourceDefinitions,
  type KubeObject,
  namespaced,
  namespaces,
  podDisruptionBudgets,
  type Resource,
} from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { type ControlPlane, startControlPlane } from '../../tools/controlplane/control-plane.ts';
import { kubectl } from '../../tools/controlplane/kubectl.ts';
import { buildPlan } from '../support/builders/plans.ts';
import { reviewAccess, type Target } from './access-review.ts';
import { SPARING } from './control-plane.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const RBAC = 'rbac.authorization.k8s.io/v1';
const clusterRoles = clusterScoped(RBAC, 'ClusterRole');
const KINDS: readonly Resource[] = [
  clusterRoles,
  clusterScoped(RBAC, 'ClusterRoleBinding'),
  namespaced(RBAC, 'Role'),
  namespaced(RBAC, 'RoleBinding'),
  namespaced('v1', 'ServiceAccount'),
  namespaced('apps/v1', 'Deployment'),
  namespaced('v1', 'Service'),
  namespaced('networking.k8s.io/v1', 'NetworkPolicy', 'networkpolicies'),
  podDisruptionBudgets,
];
const PATIENCE = { timeout: 150_000, interval: 200 };
/** For checks that read many kinds. */
const SLOWLY = { ...PATIENCE, interval: 1_000 };

let plane: ControlPlane;
let directory = '';
let admin = '';

beforeAll(async () => {
  const components = ['kube-controller-manager'] as const;
  plane = await startControlPlane({ components, environment: SPARING, log: () => undefined });
  directory = await mkdtemp(join(tmpdir(), 'refit-install-'));
  admin = await plane.kubeconfig('admin');
});
afterAll(async () => {
  await plane.stop();
  await rm(directory, { recursive: true });
});

async function refit(...args: string[]): Promise<string[]> {
  const { code, stdout, stderr } = await runRefit(...args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: [] });
  return [...stdout];
}

async function ask(...args: string[]): Promise<string> {
  return await askAs(admin, ...args);
}

async function askAs(kubeconfig: string, ...args: string[]): Promise<string> {
  const { ok, stdout, stderr } = await kubectl(plane.kubectl, kubeconfig, args);
  return (ok ? stdout : stderr + stdout).trim();
}

/**
 * Waits until the account has this access, because the API server takes a moment to observe a new role. Uses access
 * reviews, because `kubectl auth can-i` uses a cache of the kinds.
 */
async function expectAccess(kubeconfig: string, expected: Record<Target, string>): Promise<void> {
  const asOwner = async (args: readonly string[], input: string) =>
    await kubectl(plane.kubectl, kubeconfig, args, input);
  await vi.waitFor(
    async () => expect(await reviewAccess(asOwner, Object.keys(expected))).toEqual(expected),
    PATIENCE,
  );
}

/** Returns the objects that Refit manages, with the names that kubectl prints. */
async function ours(...kinds: readonly Resource[]): Promise<string[]> {
  using client = createClient(await loadClusterConfig({ path: admin }));
  const names = kinds.map(async (resource) => {
    const { items } = await client.listAll(resource, {
      labelSelector: 'app.kubernetes.io/managed-by=refit',
    });
    return items.map(
      ({ metadata }) =>
        `${[resource.plural, resource.group].filter(Boolean).join('.')}/${metadata.name}`,
    );
  });
  return (await Promise.all(names)).flat();
}

/**
 * Waits until the definitions are served. The API server may take minutes to delete a definition that it does not serve
 * yet.
 */
const untilServed = async (): Promise<string> =>
  await ask(
    'wait',
    '--for=condition=Established',
    'crd',
    '-l',
    'app.kubernetes.io/managed-by=refit',
    '--timeout=60s',
  );

const objectsOf = (text: string): KubeObject[] =>
  parseAllDocuments(text).map((document) => document.toJS() as KubeObject);

const nameOf = ({ kind, metadata }: KubeObject): string =>
  `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;

const sorted = (text: string): KubeObject[] =>
  objectsOf(text).toSorted((a, b) => nameOf(a).localeCompare(nameOf(b)));

/**
 * The files of deploy/ with the roles that the control plane of the tests has from its start, as an administrator
 * applies them by hand for controllers on hosts.
 */
const HAND_MADE = ['rbac.yaml', 'rbac-cattle.yaml', 'rbac-capi.yaml'];

async function removeHandMade(): Promise<void> {
  for (const file of HAND_MADE) {
    const documents = parseAllDocuments(await readFile(`deploy/${file}`, 'utf8'));
    const roles = documents
      .filter((document) => /Role/.test(String(document.get('kind'))))
      .join('');
    await kubectl(plane.kubectl, admin, ['delete', '--ignore-not-found', '-f', '-'], roles);
  }
}

test('roles that somebody made by hand stay, and a controller on a host keeps what they grant', async () => {
  const bindings = ['clusterrolebindings,rolebindings', '--all-namespaces'];
  const fields = '{range .items[*]}{.metadata.uid}:{.metadata.resourceVersion} {end}';
  const state = async (): Promise<string> =>
    await ask('get', ...bindings, '-o', `jsonpath=${fields}`);
  const before = await state();
  const refused = await runRefit('install', 'controller', '--apply', '--kubeconfig', admin);
  expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 1, stdout: [] });
  const names = ['k0s-autopilot', 'kube-node-lease'].map(
    (each) => `rolebinding ${each}/refit-controller`,
  );
  const said = refused.stderr.join('\n');
  expect(said).toContain(
    `REFIT_INSTALL: these objects exist already, and refit install did not create them: clusterrolebinding refit-controller, ${names.join(', ')}, rolebinding kube-system/refit-components, rolebinding default/refit-api-servers (stop the controller that uses these objects, `,
  );
  expect(await state()).toBe(before);

  const [, commands = ''] = /`(kubectl .*)`; then run this command again\)$/.exec(said) ?? [];
  expect(commands).toContain(
    'kubectl delete clusterrolebinding/refit-controller && kubectl -n k0s-autopilot delete ',
  );
  for (const command of commands.split(' && ')) await ask(...command.split(' ').slice(1));
  const applied = await refit('install', 'controller', '--apply', '--kubeconfig', admin);
  expect(applied).toContain('clusterrole refit-controller left as it is: it existed before');
  expect(applied).toContain('clusterrolebinding refit-controller created');
  const removed = await refit('uninstall', 'controller', '--kubeconfig', admin);
  expect(removed).toContain(
    'clusterrole refit-controller left as it is: refit install did not make it',
  );
  expect(removed).toContain('clusterrolebinding refit-controller deleted');
  // Uninstall does not recommend --delete-plans for a namespace that it does not delete in any case.
  expect(removed).toContain('namespace k0s-autopilot left as it is: refit install did not make it');
  expect(await ask('get', 'clusterrole', 'refit-controller', '-o', 'name')).toContain(
    'refit-controller',
  );
  await removeHandMade();
  await untilServed();
  await refit('uninstall', 'controller', '--delete-plans', '--kubeconfig', admin);
});

describe.each([
  ['controller', 'k0s'],
  ['cattle', 'cattle'],
  ['capi', 'capi'],
])('install %s', (component, folder) => {
  const flags =
    component === 'capi'
      ? [
          '--payload-url',
          'https://mirror.example.com/{version}/{os}-{arch}/k0s',
          '--checksum-url',
          'https://mirror.example.com/{version}/{os}-{arch}/k0s.sha256',
        ]
      : [];

  test('prints what the kustomize base has', async () => {
    const printed = await refit('install', component, ...flags);
    const built = await ask('kustomize', `deploy/kustomize/${folder}`);
    expect(sorted(printed.join('\n'))).toEqual(sorted(built));
  });

  test('--image is the image of the container', async () => {
    const printed = await refit(
      'install',
      component,
      ...flags,
      '--image',
      'registry.example.com/refit:9',
    );
    const images = printed.filter((line) => line.includes('image: '));
    expect(images.map((line) => line.trim())).toEqual(['image: "registry.example.com/refit:9"']);
  });

  test.each(['client', 'server'])(
    '--dry-run=%s names every object, and stores none',
    async (how) => {
      const dry = ['--dry-run', how, '--kubeconfig', admin];
      const said = await refit('install', component, ...flags, ...dry);
      const objects = objectsOf((await refit('install', component, ...flags)).join('\n'));
      expect(said).toHaveLength(objects.length);
      const forms =
        how === 'client'
          ? / (?:created \(dry run\)|would be left as it is: it existed before)$/
          : / (?:created \((?:server dry run|dry run, not checked: namespace \S+ does not exist yet)\)|would be left as it is: it existed before)$/;
      expect(said.filter((line) => !forms.test(line))).toEqual([]);
      expect(await ours(...KINDS, customResourceDefinitions, namespaces)).toEqual([]);
    },
  );

  test('--apply makes every object, and nothing the second time; uninstall removes them', async () => {
    const said = await refit('install', component, ...flags, '--apply', '--kubeconfig', admin);
    expect(
      said.filter(
        (line) => !/ (?:created|configured|left as it is: it existed before)$/.test(line),
      ),
    ).toEqual([]);
    expect((await ours(...KINDS)).length).toBeGreaterThan(8);
    const again = await refit('install', component, ...flags, '--apply', '--kubeconfig', admin);
    expect(
      again.filter((line) => !/ (?:unchanged|left as it is: it existed before)$/.test(line)),
    ).toEqual([]);
    expect(again).toHaveLength(said.length);
    const dry = ['--dry-run', 'server', '--kubeconfig', admin];
    const same = await refit('install', component, ...flags, ...dry);
    expect(same.filter((line) => / configured/.test(line))).toEqual([]);
    const edited = await refit('install', component, ...flags, '--image', 'other:9', ...dry);
    expect(edited.filter((line) => / configured/.test(line))).toEqual([
      expect.stringMatching(/^deployment \S+ configured \(server dry run\)$/),
    ]);

    await untilServed();
    await refit('uninstall', component, '--kubeconfig', admin);
    await vi.waitFor(async () => expect(await ours(...KINDS)).toEqual([]), SLOWLY);
    expect((await ours(customResourceDefinitions)).length).toBeGreaterThan(0);
    await refit('uninstall', component, '--delete-plans', '--kubeconfig', admin);
    await vi.waitFor(
      async () => expect(await ours(customResourceDefinitions, namespaces)).toEqual([]),
      SLOWLY,
    );
  });
});

test("the original's controller is not taken over: nothing is applied before it is removed", async () => {
  await ask('create', 'namespace', 'system-upgrade');
  const image = 'rancher/system-upgrade-controller:v0.14.0';
  const deployment = ['deployment', 'system-upgrade-controller', '-n', 'system-upgrade'];
  await ask('create', ...deployment, '--image', image);
  const { code, stdout, stderr } = await runRefit(
    'install',
    'cattle',
    '--apply',
    '--kubeconfig',
    admin,
  );
  expect({ code, stdout }).toEqual({ code: 1, stdout: [] });
  expect(stderr.join('\n')).toBe(
    'REFIT_INSTALL: these objects exist already, and refit install did not create them: deployment system-upgrade/system-upgrade-controller ' +
      '(stop the controller that uses these objects, and delete them in the same way as you installed them, for example with `kubectl -n system-upgrade delete deployment/system-upgrade-controller`; then run this command again)',
  );
  const imageNow = async (): Promise<string> =>
    await ask('get', ...deployment, '-o', 'jsonpath={..containers[*].image}');
  expect(await imageNow()).toBe(image);
  expect(await ours(customResourceDefinitions, clusterRoles)).toEqual([]);

  await ask('delete', ...deployment);
  await refit('install', 'cattle', '--apply', '--kubeconfig', admin);
  expect(await imageNow()).toMatch(/^refit:/);
  await refit('uninstall', 'cattle', '--delete-plans', '--kubeconfig', admin);
  await ask('delete', 'namespace', 'system-upgrade');
});

test('install waits for what uninstall is still deleting', async () => {
  const args = ['cattle', '--kubeconfig', admin];
  await refit('install', ...args, '--apply');
  const [role = ''] = await ours(clusterRoles);
  const finalizers = (value: string): string => `{"metadata":{"finalizers":${value}}}`;
  await ask('patch', role, '--type=merge', '--patch', finalizers('["example.com/held"]'));
  await refit('uninstall', ...args);
  await using install = new RefitProcess('install', ...args, '--apply');
  const waits = expect.stringMatching(
    /^clusterrole .* is being deleted: waiting up to 5 min$/,
  ) as unknown;
  await vi.waitFor(() => expect(install.stdout).toContainEqual(waits), PATIENCE);
  await ask('patch', role, '--type=merge', '--patch', finalizers('null'));
  expect(await install.ended, install.stderr.join('\n')).toBe(0);
  expect(await ours(clusterRoles)).toContain(role);
  await refit('uninstall', ...args, '--delete-plans');
});

test('what somebody else brought stays', async () => {
  const crd = 'customresourcedefinition/plans.autopilot.k0sproject.io';
  await ask('apply', '-f', 'deploy/crds/autopilot.k0sproject.io_plans.yaml');
  const before = await ask(
    'get',
    crd,
    '-o',
    'jsonpath={.metadata.resourceVersion}{.metadata.generation}',
  );
  const said = await refit('install', 'controller', '--apply', '--kubeconfig', admin);
  expect(said).toContain(
    'customresourcedefinition plans.autopilot.k0sproject.io left as it is: it existed before',
  );
  const removed = await refit('uninstall', 'controller', '--delete-plans', '--kubeconfig', admin);
  expect(removed).toContain(
    'customresourcedefinition plans.autopilot.k0sproject.io left as it is: refit install did not make it',
  );
  expect(await ask('get', crd, '-o', 'jsonpath={.metadata.name}')).toBe(
    'plans.autopilot.k0sproject.io',
  );
  expect(before).not.toBe('');
});

describe('credentials of a controller', () => {
  beforeAll(async () => {
    await ask('create', 'namespace', 'k0s-autopilot');
    for (const kind of ['plans', 'controlnodes'])
      await ask('apply', '-f', `deploy/crds/autopilot.k0sproject.io_${kind}.yaml`);
  });

  test('give the agent its own object and no other', async () => {
    const file = join(directory, 'c1.conf');
    await writeFile(
      file,
      (await refit('credentials', 'controlnode', 'c1', '--kubeconfig', admin)).join('\n'),
    );
    expect(await askAs(file, 'auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}')).toBe(
      'refit:controlnode:c1',
    );
    await expectAccess(file, {
      'autopilot.k0sproject.io/controlnodes=c1': 'get list watch create update patch',
      'autopilot.k0sproject.io/controlnodes=c2': '',
      'core/nodes=c1': '',
    });
    expect(await ask('get', 'csr', '-o', 'name')).toBe('');
  });

  test('roles that were made by hand stay as they are', async () => {
    const roles = (await readFile('deploy/rbac-controlnode.yaml', 'utf8')).replaceAll(
      'CONTROL_NODE',
      'c4',
    );
    expect(await kubectl(plane.kubectl, admin, ['apply', '-f', '-'], roles)).toMatchObject({
      ok: true,
    });
    const binding = [
      'get',
      'clusterrolebinding',
      'refit-controlnode:c4',
      '-o',
      'jsonpath={.metadata.resourceVersion}',
    ];
    const before = await ask(...binding);
    await refit('credentials', 'controlnode', 'c4', '--kubeconfig', admin);
    expect(await ask(...binding)).toBe(before);
  });

  test('with --node also its Node', async () => {
    const args = ['--node', 'n2', '--duration', '1h', '--kubeconfig', admin];
    const text = (await refit('credentials', 'controlnode', 'c2', ...args)).join('\n');
    const file = join(directory, 'c2.conf');
    await writeFile(file, text);
    await expectAccess(file, { 'core/nodes=n2': 'get list watch update', 'core/nodes=c2': '' });
    expect(parse(text)).toMatchObject({ 'current-context': 'agent' });
  });

  test('as a command for kubeconfigs, they are due again before they expire', async () => {
    const args = ['--output', 'exec-credential', '--duration', '1h', '--kubeconfig', admin];
    const [text = ''] = await refit('credentials', 'controlnode', 'c3', ...args);
    const { status } = JSON.parse(text) as {
      status: { expirationTimestamp: string; clientKeyData: string };
    };
    const left = Date.parse(status.expirationTimestamp) - Date.now();
    expect(left).toBeGreaterThan(30 * 60_000);
    expect(left).toBeLessThan(50 * 60_000);
    expect(status.clientKeyData).toContain('PRIVATE KEY');
  });

  test.each([
    ['c1: evil', '"c1: evil" is not a name of a ControlNode or Node'],
    ['c1 --duration 1m', '--duration is too short or too long: use 10m to 596523h'],
    ['c1 --duration 876000h', '--duration is too short or too long: use 10m to 596523h'],
  ])('%s: one line', async (text, message) => {
    const [name = '', ...more] = text.includes(':') ? [text] : text.split(' ');
    const { code, stderr } = await runRefit(
      'credentials',
      'controlnode',
      name,
      ...more,
      '--kubeconfig',
      admin,
    );
    expect(code).toBe(2);
    expect(stderr).toEqual([expect.stringContaining(message)]);
  });
});

test('uninstall stays away while a plan is open, and leaves what another component needs', async () => {
  const cluster = ['--kubeconfig', admin];
  // Marks the binding `refit-viewer` as an object of Helm. The components `controller` and `cattle` own the other
  // objects that they share.
  await ask('delete', 'clusterrolebinding', 'refit-viewer', '--ignore-not-found');
  await ask(
    'create',
    'clusterrolebinding',
    'refit-viewer',
    '--clusterrole=refit-viewer',
    '--group=sre',
  );
  await ask('label', 'clusterrolebinding', 'refit-viewer', 'app.kubernetes.io/managed-by=Helm');
  const installed = await refit('install', 'controller', '--apply', ...cluster);
  expect(installed).toContain('clusterrolebinding refit-viewer left as it is: it existed before');
  await refit('install', 'cattle', '--apply', ...cluster);

  const { kind, spec } = buildPlan();
  const plan = {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind,
    metadata: { name: 'autopilot' },
    spec,
  };
  expect(
    await kubectl(plane.kubectl, admin, ['apply', '-f', '-'], JSON.stringify(plan)),
  ).toMatchObject({ ok: true });
  const before = await ours(...KINDS, customResourceDefinitions, namespaces);
  const { code, stdout, stderr } = await runRefit(
    'uninstall',
    'controller',
    '--delete-plans',
    ...cluster,
  );
  expect({ code, stdout }).toEqual({ code: 1, stdout: [] });
  expect(stderr).toEqual([
    expect.stringMatching(/^REFIT_INSTALL: Plan autopilot .*has not ended .*refit abort/),
  ]);
  expect(await ours(...KINDS, customResourceDefinitions, namespaces)).toEqual(before);
  await ask('delete', 'plans.autopilot.k0sproject.io', 'autopilot');

  const removed = await refit('uninstall', 'cattle', '--delete-plans', ...cluster);
  const shared = [
    'clusterrole refit-viewer',
    'customresourcedefinition upgradepolicies.upgrade.refit.dev',
  ];
  const needed = removed.filter((line) =>
    line.endsWith('left as it is: deployment refit-system/refit-controller needs it'),
  );
  expect(needed.map((line) => line.replace(/ left .*/, ''))).toEqual(
    expect.arrayContaining(shared),
  );
  expect(removed).toContain('namespace refit-system left as it is: refit install did not make it');
  const ended = await refit('uninstall', 'controller', '--delete-plans', ...cluster);
  expect(ended.filter((line) => line.startsWith(`${shared[1]} `))).toEqual([
    `${shared[1]} deleted`,
  ]);
  expect(await ask('delete', 'clusterrolebinding', 'refit-viewer')).toContain('deleted');
});
