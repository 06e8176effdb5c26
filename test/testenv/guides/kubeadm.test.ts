/** Follows docs/guides/kubeadm.md on stand-in hosts over SSH and the real API server. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { startJavascriptServer } from '../../../sandbox/sshd/javascript-server.ts';
import { nodes } from '../../../src/kube/resources.ts';
import { openScene, type Scene, TO } from '../../support/kubeadm/suite.ts';
import { controlPlane, kubeconfigFor } from '../control-plane.ts';
import { type Block, blocksOf } from './blocks.ts';
import { ReaderShell } from './shell.ts';

const blocks = blocksOf('docs/guides/kubeadm.md');
let directory = '';
let scene: Scene;
let shell: ReaderShell;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-guide-'));
  scene = await openScene(startJavascriptServer, { hosts: 1 });
  shell = await ReaderShell.open(join(directory, 'reader'), {
    KUBECONFIG: await kubeconfigFor('admin'),
    TMPDIR: directory,
  });
  await shell.command('kubectl', `exec ${controlPlane().kubectl} "$@"`);
  // All hosts share this machine, so they have different ports instead of different addresses. `ssh-keyscan` prints
  // their keys.
  const keys = (await readFile(await filesOf('knownHostsFile'), 'utf8')).trim();
  await shell.command('ssh-keyscan', `echo '${keys}'`);
});

afterAll(async () => {
  await shell[Symbol.asyncDispose]();
  await scene[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

interface Manifest {
  readonly hosts: readonly object[];
  readonly binaries: object;
  readonly ssh: Readonly<Record<'identityFile' | 'knownHostsFile', string>>;
}

async function filesOf(name: 'identityFile' | 'knownHostsFile'): Promise<string> {
  const path = await scene.cluster.manifest(TO);
  const { ssh } = parse(await readFile(path, 'utf8')) as Manifest;
  return join(path, '..', ssh[name]);
}

/** Replaces the hosts, keys and files of the page by those of this test. */
async function adapted({ use, text }: Block): Promise<string> {
  const unasked = text.replace(
    /(?<=refit kubeadm (plan|apply))/g,
    ` --api-port ${scene.cluster.apiPort}`,
  );
  if (use !== 'cluster.yaml') return unasked.replace(/(?<=refit kubeadm apply)/g, ' --yes');
  const own = parse(await readFile(await scene.cluster.manifest(TO), 'utf8')) as Manifest;
  const ssh = { identityFile: await filesOf('identityFile'), knownHostsFile: './known_hosts' };
  const kubeconfig = await kubeconfigFor('kubeadm');
  return stringify({
    ...(parse(text) as object),
    kubeconfig,
    hosts: own.hosts,
    binaries: own.binaries,
    ssh,
  });
}

test('the page can be followed', () => {
  expect(blocks.map(({ use }) => use)).toEqual(['run', 'cluster.yaml', 'run']);
});

test.each(blocks)('$title', async (block) => {
  await shell.follow({ ...block, text: await adapted(block) });
});

test('then every node runs the new version', async () => {
  const names = scene.cluster.hosts.map(({ name }) => name);
  const found = await Promise.all(
    names.map(async (name) => await scene.cluster.client.get(nodes, name)),
  );
  expect(found.map(({ status }) => status?.nodeInfo?.kubeletVersion)).toEqual(names.map(() => TO));
});
