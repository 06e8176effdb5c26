/**
 * Tests the files of a release that `kubectl apply -f` installs: each file is complete, and its objects are in an order
 * that an API server accepts.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { startSandboxPlane } from '../../sandbox/cluster/plane.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import {
  customResourceDefinitions,
  type KubeObject,
  namespaces,
} from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { applyManifest } from '../controlplane/apply.ts';
import { installManifests } from './install-manifest.ts';

const DEPLOY = join(import.meta.dirname, '..', '..', 'deploy');
const MANIFESTS = installManifests(DEPLOY, { version: '1.2.3' });
const WITH_CONTROLLER = MANIFESTS.filter(({ name }) => name !== 'install-kubeadm.yaml');
/** The kinds that the API server in memory also has. */
const IN_MEMORY = [namespaces.kind, customResourceDefinitions.kind, 'PodDisruptionBudget'];

interface Installed extends KubeObject {
  readonly roleRef?: { readonly kind: string; readonly name: string };
  readonly subjects?: readonly {
    readonly kind: string;
    readonly name: string;
    readonly namespace?: string;
  }[];
}

function objectsIn(text: string): Installed[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Installed | null)
    .filter((object) => object !== null);
}

const titleOf = ({ kind, metadata }: Installed): string =>
  `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;

test('there is one for each dialect', () => {
  expect(MANIFESTS.map(({ name }) => name)).toEqual([
    'install-k0s.yaml',
    'install-cattle.yaml',
    'install-capi.yaml',
    'install-kubeadm.yaml',
  ]);
});

test.each(MANIFESTS)('$name begins with its version and what to do', ({ text }) => {
  const [first, second] = text.split('\n');
  expect(first).toMatch(/^# Refit 1\.2\.3 for \S/);
  expect(second).toMatch(/^# \S/);
  expect(text).not.toContain('Made from');
});

test.each(MANIFESTS)('$name has no object twice', ({ text }) => {
  const titles = objectsIn(text).map(titleOf);
  expect(titles).toEqual([...new Set(titles)]);
});

test.each(MANIFESTS)('$name has each namespace before what is in it', ({ text }) => {
  const known = ['kube-system', 'default', 'kube-node-lease'];
  const early: string[] = [];
  for (const object of objectsIn(text)) {
    const { namespace } = object.metadata;
    if (namespace !== undefined && !known.includes(namespace)) early.push(titleOf(object));
    if (object.kind === namespaces.kind) known.push(object.metadata.name);
  }
  expect(early).toEqual([]);
});

test.each(MANIFESTS)('$name has the role and the account of each binding', ({ text }) => {
  const objects = objectsIn(text);
  const titles = objects.map(titleOf);
  const missing = objects.flatMap(({ metadata, roleRef, subjects = [] }) => {
    if (roleRef === undefined) return [];
    const namespace = roleRef.kind === 'Role' ? (metadata.namespace ?? '') : '';
    const accounts = subjects.filter(({ kind }) => kind === 'ServiceAccount');
    const needed = [
      `${roleRef.kind} ${namespace}/${roleRef.name}`,
      ...accounts.map((account) => `ServiceAccount ${account.namespace ?? ''}/${account.name}`),
    ];
    return needed.filter((title) => !titles.includes(title));
  });
  expect(missing).toEqual([]);
});

test.each(WITH_CONTROLLER)(
  '$name has definitions and one Deployment with its account',
  ({ text }) => {
    const objects = objectsIn(text);
    const kinds = objects.map(({ kind }) => kind);
    expect(kinds).toContain(customResourceDefinitions.kind);
    expect(kinds.filter((kind) => kind === 'Deployment')).toHaveLength(1);
    const account = /^ +serviceAccountName: (\S+)$/m.exec(text)?.[1];
    const accounts = objects.filter(({ kind }) => kind === 'ServiceAccount');
    expect(accounts.map(({ metadata }) => metadata.name)).toContain(account);
  },
);

test('with a repository, the image of each controller is from there, and nothing else changes', () => {
  const repository = 'registry.example.com/team/refit';
  for (const [index, { text }] of installManifests(DEPLOY, {
    version: '1.2.3',
    repository,
  }).entries()) {
    const plain = MANIFESTS[index]?.text ?? '';
    expect(text.replaceAll(`image: ${repository}:`, 'image: refit:')).toBe(plain);
    expect(text === plain).toBe(!plain.includes('kind: Deployment'));
  }
});

test('the API server in memory takes the namespaces, definitions and budgets of each, in their order', async () => {
  for (const { text } of MANIFESTS) {
    const directory = await mkdtemp(join(tmpdir(), 'refit-install-manifest-'));
    onTestFinished(async () => await rm(directory, { recursive: true }));
    const plane = await startSandboxPlane(directory);
    onTestFinished(async () => await plane.stop());
    const wanted = objectsIn(text).filter(({ kind = '' }) => IN_MEMORY.includes(kind));
    const kubeconfig = await plane.kubeconfig('admin');
    await applyManifest(kubeconfig, wanted.map((object) => JSON.stringify(object)).join('\n---\n'));
    using client = createClient(await loadClusterConfig({ path: kubeconfig }));
    const { items } = await client.list(customResourceDefinitions);
    const definitions = wanted.filter(({ kind }) => kind === customResourceDefinitions.kind);
    expect(items.map(({ metadata }) => metadata.name).toSorted()).toEqual(
      definitions.map(({ metadata }) => metadata.name).toSorted(),
    );
  }
});
