/** Proves that Jobs are rendered as the original renders them. */
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';

import type { Job } from '../../../kube/resources.ts';
import { DEFAULT_JOB_SETTINGS, type JobSettings } from './config.ts';
import { hostnameOf, jobNamesOf, jobOf } from './job.ts';
import { shortenedName } from './names.ts';

const HASH = '0e4e3f4e3f8b1e811d841099cb49e4712b93833bee0604115b9a141c';
const node = buildNode('w1.example.com', { labels: { 'kubernetes.io/hostname': 'host1' } });

interface Rendered {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    name: string;
    namespace: string;
    ownerReferences: object[];
    labels: Record<string, string>;
    annotations: Record<string, string>;
  };
  readonly spec: Record<string, unknown> & {
    template: {
      metadata: unknown;
      spec: Record<string, unknown> & { containers: Container[]; initContainers?: Container[] };
    };
  };
}
type Container = Record<string, unknown> & { name: string };

function render(
  spec: Partial<CattleSpec> = {},
  settings: Partial<JobSettings> = {},
  metadata: object = {},
  on = node,
): Rendered {
  const plan = buildCattlePlan('server-plan', { serviceAccountName: 'system-upgrade', ...spec });
  const job = { ...DEFAULT_JOB_SETTINGS, ...settings };
  const config = { name: 'system-upgrade-controller', namespace: 'system-upgrade', job };
  const rendering = {
    plan: { ...plan, metadata: { ...plan.metadata, ...metadata } },
    node: on,
    version: 'v1.2.3',
    hash: HASH,
  };
  return jobOf(config, { ...rendering, settings: job }) as unknown as Rendered;
}

test('Refit shortens the name of a Job as the original does', () => {
  const name = 'apply-server-plan-on-turing-node-1-with-0e4e3f4e3f8b1e811-0c1d4';
  expect(jobNamesOf('server-plan', 'turing-node-1', HASH)[0]).toBe(name);
  expect(jobNamesOf('server-plan', 'turing-node-1.example.com', HASH)[0]).toBe(name);
});

test('a name that would be cut behind a dash loses the dash too', () => {
  const name = shortenedName('a'.repeat(55), 'b'.repeat(20));
  expect(name).toHaveLength(63);
  expect(name).toMatch(/^a{55}-b-[0-9a-f]{5}$/);
  expect(shortenedName('a'.repeat(56), 'b'.repeat(20))).toMatch(/^a{56}-[0-9a-f]{6}$/);
});

test('a node counts under its hostname label, and under its name without one', () => {
  const plain = { metadata: { name: 'w1' } };
  expect([hostnameOf(node), hostnameOf(buildNode('w1')), hostnameOf(plain)]).toEqual([
    'host1',
    'w1',
    'w1',
  ]);
  expect(JSON.stringify(render({}, {}, {}, plain).spec.template.spec['affinity'])).toContain(
    '"w1"',
  );
});

test('a Job has the name of the original, or the one that it is given', () => {
  const plan = buildCattlePlan('p');
  const job = DEFAULT_JOB_SETTINGS;
  const made = (more: { readonly name?: string }): string =>
    jobOf(
      { name: 'c', namespace: 'system-upgrade', job },
      { plan, node, version: 'v1', hash: HASH, settings: job, ...more },
    ).metadata.name;
  const [short, whole] = jobNamesOf('p', 'w1.example.com', HASH);
  expect([made({}), made({ name: whole })]).toEqual([short, whole]);
  expect(whole).toContain('w1.example.com');
});

test('the Job is in the namespace of its Plan, which owns it and can be deleted before it', () => {
  const { apiVersion, kind, metadata } = render();
  expect([apiVersion, kind, metadata.namespace]).toEqual(['batch/v1', 'Job', 'system-upgrade']);
  expect(metadata.ownerReferences).toEqual([
    {
      apiVersion: 'upgrade.cattle.io/v1',
      kind: 'Plan',
      name: 'server-plan',
      uid: 'server-plan-uid',
      controller: true,
      blockOwnerDeletion: false,
    },
  ]);
});

test('a Job that drains its node itself starts at once, without the mark of a held one', () => {
  const { metadata, spec } = render({ drain: {} });
  expect(spec).not.toHaveProperty('suspend');
  expect(metadata.annotations).not.toHaveProperty('refit.upgrade.cattle.io/drained-by-leader');
});

test('a Job that the leader drains for is held, and only the Job has the mark', () => {
  const { metadata, spec } = render({ drain: {} }, { drainInJob: false });
  expect(spec['suspend']).toBe(true);
  const mark = { 'refit.upgrade.cattle.io/drained-by-leader': 'true' };
  expect(metadata.annotations).toMatchObject(mark);
  expect(spec.template.metadata).toMatchObject({ annotations: {} });
  expect(spec.template.spec).not.toHaveProperty('initContainers');
});

test('a Plan without a deadline renders a Job without one', () => {
  expect(render({ jobActiveDeadlineSecs: 0 }).spec).not.toHaveProperty('activeDeadlineSeconds');
});

test('a Job has the labels and annotations that the original gives to a Job', () => {
  const labels = { 'example.com/team': 'a', 'x.cattle.io/y': 'b' };
  const annotations = {
    'example.com/why': 'c',
    'x.cattle.io/y': 'd',
    'kubectl.kubernetes.io/last-applied-configuration': 'e',
    'upgrade.refit.dev/pause': 'f',
  };
  const { metadata, spec } = render({}, {}, { labels, annotations });
  const { 'objectset.rio.cattle.io/hash': set, ...own } = metadata.labels;
  expect(set).toBe('d661ea5d7278683dce770ce40b105bf148fce4d9');
  expect(own).toEqual({
    'upgrade.cattle.io/controller': 'system-upgrade-controller',
    'upgrade.cattle.io/exclusive': 'false',
    'upgrade.cattle.io/node': 'w1.example.com',
    'upgrade.cattle.io/plan': 'server-plan',
    'upgrade.cattle.io/version': 'v1.2.3',
    'plan.upgrade.cattle.io/server-plan': HASH,
    'example.com/team': 'a',
  });
  const { 'objectset.rio.cattle.io/applied': applied = '', ...others } = metadata.annotations;
  expect(others).toEqual({
    'example.com/why': 'c',
    'upgrade.cattle.io/ttl-seconds-after-finished': '900',
    'objectset.rio.cattle.io/id': 'system-upgrade-controller',
    'objectset.rio.cattle.io/owner-gvk': 'upgrade.cattle.io/v1, Kind=Plan',
    'objectset.rio.cattle.io/owner-name': 'server-plan',
    'objectset.rio.cattle.io/owner-namespace': 'system-upgrade',
  });
  const last = JSON.parse(gunzipSync(Buffer.from(applied, 'base64')).toString()) as Job;
  expect(applied).not.toContain('=');
  expect(last.metadata.annotations).toEqual(others);
  expect(last.spec).toEqual(spec);
  expect(spec.template.metadata).toEqual({ labels: own, annotations: { 'example.com/why': 'c' } });
});

test('the pod of a Job is bound to its node, and has the host access of the original', () => {
  const { spec } = render({
    tolerations: [{ key: 'a' }],
    priorityClassName: 'high',
    imagePullSecrets: [{ name: 's' }],
  });
  expect(spec).toMatchObject({
    completions: 1,
    parallelism: 1,
    backoffLimit: 2,
    podReplacementPolicy: 'TerminatingOrFailed',
    ttlSecondsAfterFinished: 900,
    activeDeadlineSeconds: 600,
  });
  const { containers: _, ...pod } = spec.template.spec;
  const term = { key: 'kubernetes.io/hostname', operator: 'In', values: ['host1'] };
  const rival = { key: 'upgrade.cattle.io/plan', operator: 'In', values: ['server-plan'] };
  const metadataField = (path: string): object => ({
    path,
    fieldRef: { apiVersion: 'v1', fieldPath: `metadata.${path}` },
  });
  expect(pod).toEqual({
    hostIPC: true,
    hostPID: true,
    hostNetwork: true,
    dnsPolicy: 'ClusterFirstWithHostNet',
    restartPolicy: 'Never',
    serviceAccountName: 'system-upgrade',
    priorityClassName: 'high',
    imagePullSecrets: [{ name: 's' }],
    tolerations: [
      { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
      { key: 'a' },
    ],
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [term] }],
        },
      },
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { labelSelector: { matchExpressions: [rival] }, topologyKey: 'kubernetes.io/hostname' },
        ],
      },
    },
    volumes: [
      { name: 'host-root', hostPath: { path: '/', type: 'Directory' } },
      {
        name: 'pod-info',
        downwardAPI: {
          defaultMode: 420,
          items: [metadataField('labels'), metadataField('annotations')],
        },
      },
    ],
  });
});

test('an exclusive plan keeps away from every other exclusive one', () => {
  const rival = { key: 'upgrade.cattle.io/exclusive', operator: 'In', values: ['true'] };
  expect(JSON.stringify(render({ exclusive: true }).spec.template.spec['affinity'])).toContain(
    JSON.stringify([rival]),
  );
});

describe('containers', () => {
  const image = 'example.com:5000/a/b';
  const names = (spec: Partial<CattleSpec>): string[] => {
    const { initContainers = [], containers } = render(spec).spec.template.spec;
    return [...initContainers, ...containers].map(({ name }) => name);
  };

  test.each<[string, Partial<CattleSpec>, string[]]>([
    ['a Job without prepare, cordon and drain has only the upgrade container', {}, ['upgrade']],
    [
      'the prepare container runs before the cordon container and the upgrade container',
      { prepare: { image }, cordon: true },
      ['prepare', 'cordon', 'upgrade'],
    ],
    [
      'a Plan with cordon and drain gets a drain container and no cordon container',
      { cordon: true, drain: {} },
      ['drain', 'upgrade'],
    ],
  ])('%s', (_name, spec, wanted) => {
    expect(names(spec)).toEqual(wanted);
  });

  test('the upgrade container has the image, environment, mounts and privileges of the original', () => {
    const [upgrade] = render({
      upgrade: {
        image,
        args: ['x'],
        envs: [{ name: 'MINE', value: '1' }],
        volumes: [{ name: 'v', source: '/s', destination: '/d' }],
      },
      secrets: [
        { name: 'one', path: 'rel' },
        { name: 'two', path: '/abs', ignoreUpdates: true },
      ],
    }).spec.template.spec.containers;
    const ofPod = (name: string, fieldPath: string): object => ({
      name,
      valueFrom: { fieldRef: { fieldPath } },
    });
    expect(upgrade).toEqual({
      name: 'upgrade',
      image: `${image}:v1.2.3`,
      args: ['x'],
      env: [
        ofPod('SYSTEM_UPGRADE_NODE_NAME', 'spec.nodeName'),
        ofPod('SYSTEM_UPGRADE_POD_NAME', 'metadata.name'),
        ofPod('SYSTEM_UPGRADE_POD_UID', 'metadata.uid'),
        { name: 'MINE', value: '1' },
        { name: 'SYSTEM_UPGRADE_PLAN_NAME', value: 'server-plan' },
        { name: 'SYSTEM_UPGRADE_PLAN_LATEST_HASH', value: HASH },
        { name: 'SYSTEM_UPGRADE_PLAN_LATEST_VERSION', value: 'v1.2.3' },
      ],
      volumeMounts: [
        { name: 'host-root', mountPath: '/host' },
        { name: 'pod-info', mountPath: '/run/system-upgrade/pod', readOnly: true },
        { name: 'secret-one', mountPath: '/run/system-upgrade/secrets/rel', readOnly: true },
        { name: 'secret-two', mountPath: '/abs', readOnly: true },
        { name: 'v', mountPath: '/d' },
      ],
      securityContext: { privileged: true, capabilities: { add: ['CAP_SYS_BOOT'] } },
      imagePullPolicy: 'IfNotPresent',
    });
  });

  test('the images of prepare and upgrade get the version, kubectl has its own', () => {
    const { initContainers = [], containers } = render(
      { prepare: { image: 'a/b' }, upgrade: { image: 'c/d' }, cordon: true },
      { kubectlImage: 'kubectl:1' },
    ).spec.template.spec;
    expect([...initContainers, ...containers].map((each) => each['image'])).toEqual([
      'a/b:v1.2.3',
      'kubectl:1',
      'c/d:v1.2.3',
    ]);
  });

  test('prepare has the environment, mounts and rights that its Plan gives it', () => {
    const [prepare] =
      render({
        prepare: {
          image,
          command: ['/bin/prepare'],
          envFrom: [{ configMapRef: { name: 'more' } }],
          volumes: [{ name: 'v', source: '/s', destination: '/d' }],
          securityContext: { runAsUser: 1 },
        },
      }).spec.template.spec.initContainers ?? [];
    expect(prepare).toMatchObject({
      command: ['/bin/prepare'],
      envFrom: [{ configMapRef: { name: 'more' } }],
      securityContext: { runAsUser: 1 },
    });
    expect(prepare?.['volumeMounts']).toContainEqual({ name: 'v', mountPath: '/d' });
    expect(prepare).not.toHaveProperty('args');
  });

  test.each<[string, Partial<CattleSpec>, string[]]>([
    ['cordon', { cordon: true }, ['cordon', 'w1.example.com']],
    [
      'drain',
      { drain: { force: true } },
      [
        'drain',
        'w1.example.com',
        '--pod-selector',
        '!upgrade.cattle.io/controller',
        '--ignore-daemonsets',
        '--delete-emptydir-data',
        '--force',
      ],
    ],
  ])('%s runs kubectl for the node, with the volumes of the upgrade', (name, spec, args) => {
    const upgrade = { image, volumes: [{ name: 'v', source: '/s', destination: '/d' }] };
    const [kubectl] = render({ ...spec, upgrade }).spec.template.spec.initContainers ?? [];
    expect(kubectl).toMatchObject({ name, args });
    expect(kubectl?.['volumeMounts']).toContainEqual({ name: 'v', mountPath: '/d' });
    expect(kubectl).not.toHaveProperty('securityContext');
  });

  test('without an explicit order to cordon, and without prepare, there is no init container', () => {
    expect(render({ cordon: false }).spec.template.spec).not.toHaveProperty('initContainers');
  });

  test('the pod has the Secrets and the paths of the node as volumes', () => {
    const { spec } = render({
      upgrade: { image, volumes: [{ name: 'v', source: '/s', destination: '/d' }] },
      secrets: [
        { name: 'one', path: '' },
        { name: 'two', path: '/abs', ignoreUpdates: true, defaultMode: 0o400 },
      ],
    }).spec.template;
    expect((spec['volumes'] as unknown[]).slice(2)).toEqual([
      { name: 'secret-one', secret: { secretName: 'one', optional: false } },
      { name: 'secret-two', secret: { secretName: 'two', optional: true, defaultMode: 0o400 } },
      { name: 'v', hostPath: { path: '/s' } },
    ]);
    expect(spec.containers[0]?.['volumeMounts']).toContainEqual({
      name: 'secret-one',
      mountPath: '/run/system-upgrade/secrets/one',
      readOnly: true,
    });
  });

  test('the setting decides whether the upgrade is privileged', () => {
    const [upgrade] = render({}, { privileged: false }).spec.template.spec.containers;
    expect(upgrade?.['securityContext']).toMatchObject({ privileged: false });
  });

  test('a security context in spec.upgrade replaces the default security context as a whole', () => {
    const [upgrade] = render({ upgrade: { image, securityContext: { runAsUser: 1 } } }).spec
      .template.spec.containers;
    expect(upgrade?.['securityContext']).toEqual({ runAsUser: 1 });
  });
});

describe('on a Windows node', () => {
  const windows = buildNode('win', { labels: { 'kubernetes.io/os': 'windows' } });
  const asSystem = {
    windowsOptions: { hostProcess: true, runAsUserName: 'NT AUTHORITY\\SYSTEM' },
  };
  const settings = { kubectlImage: 'kubectl:linux', kubectlImageWindows: 'kubectl:windows' };
  const own = { securityContext: { runAsUser: 1 } };
  const podOf = (spec: Partial<CattleSpec>) => render(spec, settings, {}, windows).spec.template;

  test.each<[string, Partial<CattleSpec>]>([
    ['cordon', { cordon: true }],
    ['drain', { drain: {} }],
  ])('%s has the image for Windows, and runs as SYSTEM on the host', (name, spec) => {
    const [kubectl] = podOf(spec).spec.initContainers ?? [];
    expect(kubectl).toMatchObject({ name, image: 'kubectl:windows', securityContext: asSystem });
  });

  test('prepare runs as SYSTEM whatever its Plan says', () => {
    const [prepare] = podOf({ prepare: { image: 'a/b', ...own } }).spec.initContainers ?? [];
    expect(prepare?.['securityContext']).toEqual(asSystem);
  });

  test('the upgrade runs as SYSTEM unless its Plan says otherwise', () => {
    const contexts = [{}, own].map(
      (more) =>
        podOf({ upgrade: { image: 'a/b', ...more } }).spec.containers[0]?.['securityContext'],
    );
    expect(contexts).toEqual([asSystem, own.securityContext]);
  });
});

test.each([
  ['no delay', undefined, 900],
  ['a delay as long as the Job is kept', '15m', 900],
  ['a longer one, which is rounded up to a second', '15m0.1s', 961],
  ['a long one', '30m', 1860],
  ['one that cannot be read', 'soon', 900],
])(
  'if postCompleteDelay is longer than the TTL, a Job is kept one minute longer than the delay: %s',
  (_name, delay, ttl) => {
    const { metadata, spec } = render(delay === undefined ? {} : { postCompleteDelay: delay });
    expect(spec['ttlSecondsAfterFinished']).toBe(ttl);
    expect(metadata.annotations['upgrade.cattle.io/ttl-seconds-after-finished']).toBe(String(ttl));
  },
);
