/**
 * Tests the manifests of a release on a real API server of its own: `kubectl apply -f` installs each file, and
 * kustomize installs them by URL.
 */
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../src/kube/resources.ts';
import { type ControlPlane, startControlPlane } from '../../tools/controlplane/control-plane.ts';
import { kubectl } from '../../tools/controlplane/kubectl.ts';
import { run } from '../../tools/controlplane/run.ts';
import { installManifests } from '../../tools/release/install-manifest.ts';
import { SPARING } from './control-plane.ts';

const TAG = 'v1.2.3';
const MANIFESTS = installManifests('deploy', { version: '1.2.3' });
/** Roles that every control plane of the tests has from its start. */
const FROM_START = ['rbac.yaml', 'rbac-cattle.yaml', 'rbac-capi.yaml'];

let plane: ControlPlane;
let directory = '';
let admin = '';
/** A repository with the folder deploy/ and a tag, as the real one has. */
let repository = '';

beforeAll(async () => {
  plane = await startControlPlane({ environment: SPARING, log: () => undefined });
  directory = await mkdtemp(join(tmpdir(), 'refit-install-manifests-'));
  admin = await plane.kubeconfig('admin');
  await removeRoles();
  repository = join(directory, 'repository');
  await makeRepository();
});

afterAll(async () => {
  await plane.stop();
  await rm(directory, { recursive: true });
});

async function removeRoles(): Promise<void> {
  for (const file of FROM_START) {
    const documents = parseAllDocuments(await readFile(`deploy/${file}`, 'utf8'));
    const roles = documents.filter((document) => /Role/.test(String(document.get('kind'))));
    const { ok } = await kubectl(
      plane.kubectl,
      admin,
      ['delete', '--ignore-not-found', '-f', '-'],
      roles.join(''),
    );
    expect(ok).toBe(true);
  }
}

async function makeRepository(): Promise<void> {
  await mkdir(repository);
  await cp('deploy', join(repository, 'deploy'), { recursive: true });
  const who = ['-c', 'user.name=test', '-c', 'user.email=test@example.com'];
  await git('init', '--quiet');
  await git('add', '.');
  await git(...who, 'commit', '--quiet', '--message', 'deploy');
  await git('tag', TAG);
  // Makes a commit after the tag. kustomize must use the tag, and not this commit.
  await rm(join(repository, 'deploy', 'kustomize'), { recursive: true });
  await git(...who, 'commit', '--quiet', '--all', '--message', 'later');
}

async function git(...args: readonly string[]): Promise<void> {
  const { ok, stderr } = await run('git', args, { cwd: repository });
  expect({ ok, stderr }).toEqual({ ok: true, stderr: '' });
}

const nameOf = ({ kind, metadata }: KubeObject): string =>
  `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;

function objectsIn(text: string): KubeObject[] {
  return parseAllDocuments(text, { version: '1.1' })
    .map((document) => document.toJS() as KubeObject | null)
    .filter((object) => object !== null)
    .toSorted((a, b) => nameOf(a).localeCompare(nameOf(b)));
}

/** Returns the lines that kubectl printed, one for each object. */
async function applied(path: string): Promise<string[]> {
  const { ok, stdout, stderr } = await kubectl(plane.kubectl, admin, ['apply', '-f', path]);
  // The tests have made some namespaces and accounts before, without `kubectl apply`.
  const isExpected = (line: string): boolean =>
    line === '' || line.includes('is missing the kubectl.kubernetes.io/last-applied');
  const warnings = stderr.split('\n').filter((line) => !isExpected(line));
  expect({ ok, warnings }).toEqual({ ok: true, warnings: [] });
  return stdout.trim().split('\n');
}

describe.each(MANIFESTS)('$name', ({ name, text }) => {
  test('kubectl apply -f installs a release manifest as it is, and kubectl diff then finds no change', async () => {
    const path = join(directory, name);
    await writeFile(path, text);
    const lines = await applied(path);
    expect(lines).toHaveLength(objectsIn(text).length);
    // kubectl says "configured" about some objects that do not change, so the objects are compared instead.
    const { ok, stdout } = await kubectl(plane.kubectl, admin, ['diff', '-f', path]);
    expect({ ok, stdout }).toEqual({ ok: true, stdout: '' });
  });

  test('kustomize with the URL of a tag builds the same objects as the release manifest', async () => {
    const dialect = name.replace(/^install-|\.yaml$/g, '');
    const url = `file://${repository}//deploy/kustomize/${dialect}?ref=${TAG}`;
    const { ok, stdout, stderr } = await run(plane.kubectl, ['kustomize', url]);
    expect({ ok, stderr }).toEqual({ ok: true, stderr: '' });
    expect(objectsIn(stdout)).toEqual(objectsIn(text));
  });
});
