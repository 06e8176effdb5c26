/** Tests the check of removed and deprecated APIs. */
import { expect, test } from 'vitest';
import { readyContext } from '../../../test/support/ready/world.ts';
import { factsOfMinor } from '../../versions/facts.ts';
import { unknown } from '../asking.ts';
import { apisLostIn, checkApis } from './apis.ts';

const VERSION = JSON.stringify({ gitVersion: 'v1.36.3' });
const served = (kind: string, name: string): string =>
  JSON.stringify({
    resources: [
      { kind, name, namespaced: false },
      { kind, name: `${name}/status` },
    ],
  });
const METRIC = 'apiserver_requested_deprecated_apis';

test('the APIs that a version lost are those that an earlier one serves, each with its successors', () => {
  const target = factsOfMinor(37);
  const lost = target === undefined ? [] : apisLostIn(target);
  expect(lost).toContainEqual({
    apiVersion: 'networking.k8s.io/v1beta1',
    kind: 'IPAddress',
    since: 37,
    successors: ['networking.k8s.io/v1'],
  });
  expect(lost.map(({ kind }) => kind)).not.toContain('Deployment');
});

const CLASS = { apiVersion: 'storage.k8s.io/v1beta1', kind: 'VolumeAttributesClass' };
const managedIn = (apiVersion: string, more: object = {}): object => ({
  ...CLASS,
  metadata: { name: 'gold', managedFields: [{ manager: 'old-csi', apiVersion }], ...more },
});
const CLASSES = served('VolumeAttributesClass', 'volumeattributesclasses');
const TEXTS = {
  '/apis/storage.k8s.io/v1beta1': CLASSES,
  '/apis/storage.k8s.io/v1': CLASSES,
};

test('an object that a program wrote in a removed version is a warning that names the program', async () => {
  const context = readyContext({ objects: [managedIn('storage.k8s.io/v1beta1')], texts: TEXTS });
  expect(await checkApis(context)).toEqual([
    {
      state: 'warning',
      object: 'VolumeAttributesClass gold',
      message:
        'Kubernetes 1.37 no longer serves VolumeAttributesClass of storage.k8s.io/v1beta1, and old-csi wrote it in this version',
      cure: 'change what writes it to storage.k8s.io/v1',
    },
  ]);
});

test('an object that kubectl apply wrote in a removed version is a warning', async () => {
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(CLASS) };
  const objects = [managedIn('storage.k8s.io/v1', { annotations })];
  expect(await checkApis(readyContext({ objects, texts: TEXTS }))).toEqual([
    expect.objectContaining({
      state: 'warning',
      message: expect.stringContaining('and kubectl apply wrote it in this version') as string,
    }),
  ]);
});

test('an object that is written in the version that stays is ok', async () => {
  const context = readyContext({ objects: [managedIn('storage.k8s.io/v1')], texts: TEXTS });
  expect(await checkApis(context)).toEqual([
    { state: 'ok', message: 'no object, and no request uses a removed API of v1.37.0' },
  ]);
});

const WORKLOAD = { apiVersion: 'scheduling.k8s.io/v1alpha2', kind: 'Workload' };
const WORKLOADS = { '/apis/scheduling.k8s.io/v1alpha2': served('Workload', 'workloads') };
const workloads = ['one', 'two'].map((name) => ({
  ...WORKLOAD,
  metadata: { name, namespace: 'app' },
}));

test('objects that exist only in a removed version are a blocker', async () => {
  expect(await checkApis(readyContext({ objects: workloads, texts: WORKLOADS }))).toEqual([
    {
      state: 'blocker',
      object: 'Workload app/one, app/two',
      message:
        'Kubernetes 1.37 no longer serves Workload of scheduling.k8s.io/v1alpha2, and this cluster serves no other version that 1.37 has, so 2 objects would be lost',
      cure: 'save what you need of them, and delete them before the upgrade',
    },
  ]);
});

test('objects that the cluster also serves in a version that stays are no blocker', async () => {
  const texts = {
    ...WORKLOADS,
    '/apis/scheduling.k8s.io/v1beta1': served('Workload', 'workloads'),
  };
  expect(await checkApis(readyContext({ objects: workloads, texts }))).toEqual([
    { state: 'ok', message: 'no object, and no request uses a removed API of v1.37.0' },
  ]);
});

test('a removed version without objects is ok', async () => {
  expect(await checkApis(readyContext({ texts: WORKLOADS }))).toEqual([
    expect.objectContaining({ state: 'ok' }),
  ]);
});

test('a removed API that somebody has requested is a warning with the API servers', async () => {
  const line = (release: string): string =>
    `${METRIC}{group="resource.k8s.io",removed_release="${release}",resource="deviceclasses",subresource="",version="v1alpha9"} 1`;
  const servers = [
    { '/version': VERSION, '/metrics': `# HELP x\n${line('1.37')}\n` },
    { '/version': VERSION, '/metrics': `${line('1.37')}\n` },
    { '/version': VERSION, '/metrics': `${line('1.40').replace('deviceclasses', 'later')}\n` },
  ];
  expect(await checkApis(readyContext({ servers }))).toEqual([
    {
      state: 'warning',
      object: 'deviceclasses of resource.k8s.io/v1alpha9',
      message:
        'somebody has requested it since API server 10.0.0.1, 10.0.0.2 started, and Kubernetes 1.37 removed it',
      cure: 'find the client in the audit log (k8s.io/removed-release), and update it',
    },
  ]);
});

test('an API server whose metrics cannot be read is unknown, and the others still count', async () => {
  const servers = [{ '/version': VERSION, '/metrics': '' }, { '/version': VERSION }];
  expect(await checkApis(readyContext({ servers }))).toEqual([
    {
      state: 'unknown',
      object: 'API server 10.0.0.2',
      message: 'whether somebody uses deprecated APIs: you may not read this path',
    },
  ]);
});

test('a version before all known ones is unknown', async () => {
  expect(await checkApis(readyContext({ to: 'v1.20.0' }))).toEqual([
    expect.objectContaining({ state: 'unknown' }),
  ]);
});

test('a version after all known ones is a question, and what API servers say about it still counts', async () => {
  const metrics = `${METRIC}{group="a.k8s.io",removed_release="1.38",resource="x",subresource="",version="v1beta1"} 1\n`;
  const servers = [{ '/version': VERSION, '/metrics': metrics }];
  const question = expect.objectContaining({
    state: 'unknown',
    message: expect.stringContaining(
      'not those of v1.38.0, so they are judged as for 1.37',
    ) as string,
  }) as object;
  expect(await checkApis(readyContext({ servers, to: 'v1.38.0' }))).toEqual([
    question,
    expect.objectContaining({ state: 'warning', object: 'x of a.k8s.io/v1beta1' }),
  ]);
  expect(await checkApis(readyContext({ servers, to: 'v1.37.0' }))).toEqual([
    expect.objectContaining({ state: 'ok' }),
  ]);
  expect(await checkApis(readyContext({ to: 'v2.0.0' }))).toEqual([
    expect.objectContaining({ state: 'unknown' }),
  ]);
});

test('APIs that the user may not look up are told together', async () => {
  const context = {
    ...readyContext(),
    text: async () => await Promise.resolve(unknown('you may not read /apis')),
  };
  expect(await checkApis(context)).toEqual([
    { state: 'unknown', message: 'you may not read /apis' },
  ]);
});
