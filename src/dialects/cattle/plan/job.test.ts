/** Proves that Jobs are rendered as the original renders them. */
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';

import type { DrainSpec } from '../../../api/cattle/workload.ts';
import type { Job } from '../../../kube/resources.ts';
import { DEFAULT_JOB_SETTINGS, deadlineOf, type JobSettings } from './config.ts';
import { drainArguments, jobNamesOf, jobOf, withLatestTag } from './job.ts';
import { shortenedName } from './names.ts';

const HASH = '0e4e3f4e3f8b1e811d841099cb49e4712b93833bee0604115b9a141c';
const node = buildNode('w1.example.com', { labels: { 'kubernetes.io/hostname': 'host1' } });

interface Rendered {
  readonly metadata: {
    name: string;
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
): Rendered {
  const plan = buildCattlePlan('server-plan', { serviceAccountName: 'system-upgrade', ...spec });
  const job = { ...DEFAULT_JOB_SETTINGS, ...settings };
  const config = { name: 'system-upgrade-controller', namespace: 'system-upgrade', job };
  const rendering = {
    plan: { ...plan, metadata: { ...plan.metadata, ...metadata } },
    node,
    version: 'v1.2.3',
    hash: HASH,
  };
  return jobOf(config, { ...rendering, settings: job }) as unknown as Rendered;
}

test('the name of a Job is cut like the original cuts it', () => {
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

test('labels and annotations', () => {
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

test('the pod is on its node, with the rights of the original', () => {
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
    ['upgrade alone', {}, ['upgrade']],
    ['prepare first', { prepare: { image }, cordon: true }, ['prepare', 'cordon', 'upgrade']],
    ['drain instead of cordon', { cordon: true, drain: {} }, ['drain', 'upgrade']],
  ])('%s', (_name, spec, wanted) => {
    expect(names(spec)).toEqual(wanted);
  });

  test('the upgrade has image, environment, mounts and rights of the original', () => {
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

  test('a security context of its own replaces that as a whole', () => {
    const [upgrade] = render({ upgrade: { image, securityContext: { runAsUser: 1 } } }).spec
      .template.spec.containers;
    expect(upgrade?.['securityContext']).toEqual({ runAsUser: 1 });
  });
});

test.each<[string, DrainSpec, string[]]>([
  [
    'as written',
    {
      podSelector: {
        matchExpressions: [{ key: 'component', operator: 'NotIn', values: ['sonobuoy'] }],
      },
    },
    [
      'component notin (sonobuoy),!upgrade.cattle.io/controller',
      '--ignore-daemonsets',
      '--delete-emptydir-data',
    ],
  ],
  [
    'with everything',
    {
      timeout: 1_500_000_000,
      gracePeriod: -1,
      force: true,
      disableEviction: true,
      skipWaitForDeleteTimeout: 1,
      deleteEmptydirData: false,
      ignoreDaemonSets: false,
    },
    [
      '!upgrade.cattle.io/controller',
      '--force',
      '--timeout',
      '1.5s',
      '--grace-period',
      '-1',
      '--disable-eviction=true',
      '--skip-wait-for-delete-timeout',
      '1',
    ],
  ],
  [
    'a timeout in words',
    { timeout: '90s', ignoreDaemonSets: false, deleteLocalData: false },
    ['!upgrade.cattle.io/controller', '--timeout', '90s'],
  ],
])('drain %s', (_name, drain, [selector = '', ...rest]) => {
  expect(drainArguments(drain, 'w1')).toEqual(['drain', 'w1', '--pod-selector', selector, ...rest]);
});

test.each([
  ['test/image', 'test/image:v1'],
  ['test/image:t', 'test/image:t'],
  ['img.example.com:5000/test/image', 'img.example.com:5000/test/image:v1'],
  ['img.example.com:5000/test/image:t', 'img.example.com:5000/test/image:t'],
  ['docker.io/library/alpine', 'alpine:v1'],
  ['docker.io/a/b', 'a/b:v1'],
  [`a/b@sha256:${'0'.repeat(64)}`, `a/b@sha256:${'0'.repeat(64)}`],
  ['Not An Image', 'Not An Image'],
])('the latest-tag rule: %s', (image, tagged) => {
  expect(withLatestTag(image, 'v1')).toBe(tagged);
});

test.each<[number | undefined, Partial<JobSettings>, number | undefined]>([
  [12_345, {}, 12_345],
  [undefined, { activeDeadlineSeconds: 300 }, 300],
  [0, { activeDeadlineSeconds: 300 }, undefined],
  [-1, { activeDeadlineSeconds: 3600 }, 3600],
  [600, { activeDeadlineSecondsMax: 300 }, 300],
  [0, { activeDeadlineSecondsMax: 300 }, 300],
])('a deadline of %s with %j', (own, settings, wanted) => {
  expect(deadlineOf(own, { ...DEFAULT_JOB_SETTINGS, ...settings })).toBe(wanted);
});

test('a delay that outlives the Job keeps it longer', () => {
  expect(render({ postCompleteDelay: '30m' }).spec['ttlSecondsAfterFinished']).toBe(1860);
});
