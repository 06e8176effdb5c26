/**
 * Tests that backups of kubeadm on a host are not restored, unless a run of Refit on that host made them and did not
 * end.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parseFacts } from '../../src/dialects/kubeadm/host/probe.ts';
import {
  kubeadmBody,
  probeScript,
  repairScript,
  stepScript,
} from '../../src/dialects/kubeadm/host/scripts.ts';
import { type ManifestHost, parseManifest } from '../../src/dialects/kubeadm/plan/manifest.ts';
import { run } from '../../tools/controlplane/run.ts';

const COMPONENTS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];
const OLD = 'v1.36.2';
const NEW = 'v1.36.3';

let root = '';
let scripts = '';
const at = (...path: readonly string[]): string => join(root, ...path);
const manifestOf = (name: string): string => at('etc/kubernetes/manifests', `${name}.yaml`);
const backupOf = (name: string, stamp = '1'): string =>
  at(`etc/kubernetes/tmp/kubeadm-backup-manifests-${stamp}`, `${name}.yaml`);

async function put(path: string, name: string, version = OLD): Promise<void> {
  await mkdir(join(path, '..'), { recursive: true });
  await writeFile(path, `image: registry.local:5000/${name}:${version}\n`);
}

async function onHost(script: string): Promise<string> {
  const environment = { REFIT_ROOT: root, PATH: `${at('usr/bin')}:${process.env['PATH']}` };
  await writeFile(scripts, script);
  const { stdout, stderr } = await run('sh', [scripts], { environment });
  return `${stdout}${stderr}`;
}

const MANIFEST = parseManifest(
  `{version: ${NEW}, hosts: [{name: cp, role: controlPlane}], binaries: {kubeadm: {path: /a}, kubelet: {path: /b}}}`,
  'm.yaml',
);
const probe = async (role: ManifestHost['role'] = 'controlPlane') =>
  parseFacts(await onHost(probeScript(MANIFEST, { name: 'cp', role }, 0))).missing;

async function putKubeadm(body: string): Promise<void> {
  for (const path of [at('usr/bin/kubeadm'), at('var/lib/refit/staged/kubeadm')]) {
    await mkdir(join(path, '..'), { recursive: true });
    await writeFile(path, `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  }
}

/** Runs a kubeadm that is killed after it has moved the scheduler to its backup. */
async function cutKubeadm(stamp: string, code = 137): Promise<void> {
  const [folder, fresh] = ['backup', 'upgraded'].map((kind) =>
    at(`etc/kubernetes/tmp/kubeadm-${kind}-manifests-${stamp}`),
  );
  const render = `mkdir -p ${folder} ${fresh}\ntouch ${fresh}/kube-scheduler.yaml`;
  await putKubeadm(`${render}\nmv ${manifestOf('kube-scheduler')} ${folder}/\nexit ${code}`);
}

const step = async (
  rollout = 'run-1',
  role: ManifestHost['role'] = 'controlPlane',
): Promise<string> =>
  await onHost(
    stepScript({ rollout, step: 'kubeadm', version: NEW }, kubeadmBody('node', role, {})),
  );

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'refit-host-'));
  scripts = at('script.sh');
  for (const name of COMPONENTS) await put(manifestOf(name), name);
  await writeFile(at('etc/kubernetes/controller-manager.conf'), '');
});
afterEach(async () => await rm(root, { recursive: true }));

describe('a worker that was a control-plane host once', () => {
  beforeEach(async () => {
    await rm(at('etc/kubernetes/manifests'), { recursive: true });
    for (const name of COMPONENTS) await put(backupOf(name), name);
    await mkdir(at('etc/kubernetes/manifests'));
  });

  test('is not said to miss anything', async () => {
    expect(await probe('worker')).toEqual([]);
  });

  test('gets no control plane from its kubeadm step, even if a run was cut off there', async () => {
    await cutKubeadm('2');
    await step('run-1', 'worker');
    await step('run-1', 'worker');
    for (const name of COMPONENTS)
      await expect(readFile(manifestOf(name))).rejects.toThrow('ENOENT');
  });

  test('gets none from a repair either, if the manifest calls it a control-plane host', async () => {
    expect((await probe()).map(({ backup }) => backup)).toEqual([
      'refused',
      'refused',
      'refused',
      'refused',
    ]);
    await onHost(repairScript());
    await onHost(repairScript(backupOf('kube-scheduler')));
    for (const name of COMPONENTS)
      await expect(readFile(manifestOf(name))).rejects.toThrow('ENOENT');
  });
});

describe('a control-plane host that misses its scheduler', () => {
  beforeEach(async () => {
    await put(backupOf('kube-scheduler'), 'kube-scheduler');
  });

  test('with a backup that no run of ours made: a person must agree to exactly that one', async () => {
    await rm(manifestOf('kube-scheduler'));
    const backup = backupOf('kube-scheduler');
    expect(await probe()).toEqual([{ name: 'kube-scheduler', backup: 'hand', detail: backup }]);
    expect(await onHost(repairScript())).not.toContain('restored');
    expect(await onHost(repairScript(backupOf('kube-scheduler', 'other')))).not.toContain(
      'restored',
    );
    expect(await onHost(repairScript(backup))).toContain('restored kube-scheduler.yaml');
    expect(await probe()).toEqual([]);
  });

  test('with a backup that is older than what runs: it is refused', async () => {
    await rm(manifestOf('kube-scheduler'));
    for (const name of COMPONENTS.slice(1, 3)) await put(manifestOf(name), name, NEW);
    const [missing] = await probe();
    expect(missing).toMatchObject({
      backup: 'refused',
      detail: expect.stringContaining(`has ${OLD}, but`) as string,
    });
    expect(await onHost(repairScript(backupOf('kube-scheduler')))).not.toContain('restored');
  });

  test('after a run of ours was cut off: the backup of that run is restored, not the older one', async () => {
    await put(backupOf('kube-scheduler'), 'kube-scheduler', 'v1.30.0');
    await cutKubeadm('2');
    await step();
    expect(await probe()).toEqual([
      { name: 'kube-scheduler', backup: 'run', detail: backupOf('kube-scheduler', '2') },
    ]);
    expect(await onHost(repairScript())).toContain('restored kube-scheduler.yaml');
    expect(await readFile(manifestOf('kube-scheduler'), 'utf8')).toContain(OLD);
  });

  test('after an interrupted run, the next run restores the scheduler manifest before it starts kubeadm', async () => {
    await cutKubeadm('2');
    await step();
    await cutKubeadm('3');
    expect(await step('run-2')).toContain('restored kube-scheduler.yaml');
  });

  test('after our run has ended: its backups are old ones', async () => {
    await cutKubeadm('2');
    await step();
    await onHost(repairScript());
    await putKubeadm('exit 0');
    await step();
    await rm(manifestOf('kube-scheduler'));
    expect((await probe()).map(({ backup }) => backup)).toEqual(['hand']);
    expect(await onHost(repairScript())).not.toContain('restored');
  });
});

test('a host that lost its role in the middle of a run gets no control plane back as a worker', async () => {
  await cutKubeadm('2');
  await step();
  await rm(at('etc/kubernetes/manifests'), { recursive: true });
  await mkdir(at('etc/kubernetes/manifests'));
  expect(await probe('worker')).toEqual([]);
  expect(await step('run-2', 'worker')).not.toContain('restored');
  await expect(readFile(manifestOf('kube-scheduler'))).rejects.toThrow('ENOENT');
});

test.each([
  ['has ended', 0],
  ['has failed by itself', 1],
])('a kubeadm that a person ran after our run %s is not ours', async (_how, code) => {
  await putKubeadm(`exit ${code}`);
  await step();
  await cutKubeadm('2');
  await onHost('kubeadm');
  expect((await probe()).map(({ backup }) => backup)).toEqual(['hand']);
  expect(await onHost(repairScript())).not.toContain('restored');
});

describe('after a run of ours was cut off before it moved a manifest', () => {
  beforeEach(async () => {
    await putKubeadm('exit 137');
    await step();
  });
  const isNotRestored = async (backup: 'hand' | 'refused'): Promise<void> => {
    expect((await probe()).map((missing) => missing.backup)).toEqual([backup]);
    expect(await onHost(repairScript())).not.toContain('restored');
    expect(await step('run-2')).not.toContain('restored');
  };

  test('a backup with another manifest than ours found is not restored', async () => {
    await put(manifestOf('kube-scheduler'), 'kube-scheduler', 'v1.36.2-own');
    await cutKubeadm('2');
    await onHost('kubeadm');
    await isNotRestored('hand');
  });

  test('nor one beside a backup of another kubeadm', async () => {
    await put(backupOf('kube-apiserver', '1'), 'kube-apiserver');
    await cutKubeadm('2');
    await onHost('kubeadm');
    await isNotRestored('hand');
  });

  test('nor one that somebody removed after a kubeadm by hand had ended well', async () => {
    await cutKubeadm('2', 0);
    await onHost('kubeadm');
    await putKubeadm('exit 0');
    await rm(at('etc/kubernetes/tmp/kubeadm-upgraded-manifests-2'), { recursive: true });
    await isNotRestored('hand');
  });

  test('nor one on a host that has another version by now', async () => {
    await cutKubeadm('2');
    await onHost('kubeadm');
    for (const name of COMPONENTS.slice(1, 3)) await put(manifestOf(name), name, 'v1.37.0');
    await isNotRestored('refused');
  });
});

describe('a host that was reset after a run of ours was cut off there, and calls itself a control-plane host still', () => {
  beforeEach(async () => {
    await cutKubeadm('2');
    await step();
  });

  test('gets nothing where more than one manifest is missing', async () => {
    await rm(manifestOf('kube-apiserver'));
    await put(backupOf('kube-apiserver', '2'), 'kube-apiserver');
    expect((await probe()).map(({ backup }) => backup)).toEqual(['refused', 'refused']);
    expect(await onHost(repairScript())).not.toContain('restored');
  });

  test('gets nothing without the files of a control plane, not by hand either', async () => {
    await rm(at('etc/kubernetes/controller-manager.conf'));
    const [missing] = await probe();
    expect(missing?.detail).toBe(
      '/etc/kubernetes/controller-manager.conf is missing: this is no control-plane host',
    );
    expect(await onHost(repairScript())).not.toContain('restored');
    expect(await onHost(repairScript(backupOf('kube-scheduler', '2')))).not.toContain('restored');
    expect(await step('run-2')).not.toContain('restored');
  });
});

test('etcd comes back only from a run of ours, and never where it was not there before', async () => {
  await rm(manifestOf('etcd'));
  await put(backupOf('etcd'), 'etcd');
  expect((await probe()).map(({ name, backup }) => `${name} ${backup}`)).toEqual(['etcd refused']);
  await cutKubeadm('2');
  await step();
  await put(backupOf('etcd', '2'), 'etcd');
  expect(await onHost(repairScript())).toBe('restored kube-scheduler.yaml\n');
  expect(await onHost(repairScript(backupOf('etcd')))).not.toContain('restored');
});
