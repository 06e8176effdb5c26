/**
 * Tests a kubelet that does not start after its upgrade: the host gets its earlier files back byte by byte, and the
 * next run does all steps again.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  kubeadmBody,
  kubeletBody,
  rollBackScript,
  stageBody,
  stepScript,
} from '../../src/dialects/kubeadm/host/scripts.ts';
import { run } from '../../tools/controlplane/run.ts';

const OLD = 'v1.35.2';
const NEW = 'v1.36.3';
let root = '';
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'refit-host-'));
  for (const folder of ['run', 'var/lib']) await mkdir(join(root, folder), { recursive: true });
  await put(
    'usr/bin/systemctl',
    '#!/bin/sh\necho "$* $(kubelet --version)" >>"$REFIT_ROOT/systemctl"\n',
  );
  for (const [folder, version] of [
    ['usr/bin', OLD],
    ['new', NEW],
  ] as const) {
    await put(`${folder}/kubelet`, `#!/bin/sh\necho Kubernetes ${version}\n`);
    await put(`${folder}/kubeadm`, kubeadm(version));
  }
  await put('var/lib/kubelet/config.yaml', OLD);
  await put('var/lib/kubelet/kubeadm-flags.env', OLD);
});
afterEach(async () => await rm(root, { recursive: true }));

/** Returns a kubeadm that writes the configuration of the kubelet, including a file that did not exist before. */
function kubeadm(version: string): string {
  const folder = '"$REFIT_ROOT/var/lib/kubelet"';
  return `#!/bin/sh\n[ "$1" != version ] || { echo ${version}; exit; }\ncd ${folder}\nfor file in config.yaml kubeadm-flags.env; do printf ${version} >$file; done\n`;
}

async function put(path: string, content: string): Promise<void> {
  await mkdir(join(root, path, '..'), { recursive: true });
  await writeFile(join(root, path), content, { mode: 0o755 });
}

async function onHost(script: string): Promise<string> {
  const environment = { REFIT_ROOT: root, PATH: `${join(root, 'usr/bin')}:${process.env['PATH']}` };
  const { stdout, stderr } = await run('sh', ['-s'], { environment, input: script });
  return `${stdout}${stderr}`;
}

const BINARIES = { kubeadm: { path: '/new/kubeadm' }, kubelet: { path: '/new/kubelet' } };
async function upgrade(rollout: string): Promise<void> {
  const context = { rollout, version: NEW };
  await onHost(stepScript({ ...context, step: 'stage' }, stageBody({ binaries: BINARIES })));
  await onHost(stepScript({ ...context, step: 'kubeadm' }, kubeadmBody('node', 'worker', {})));
  await onHost(stepScript({ ...context, step: 'kubelet' }, kubeletBody({})));
}

const FILES = [
  'usr/bin/kubeadm',
  'usr/bin/kubelet',
  'var/lib/kubelet/config.yaml',
  'var/lib/kubelet/kubeadm-flags.env',
];
const contents = async (): Promise<string[]> =>
  await Promise.all(FILES.map(async (path) => await readFile(join(root, path), 'utf8')));

test('a roll-back restores binaries and configuration, and the next run does all steps again', async () => {
  const before = await contents();
  await upgrade('r');
  const after = await contents();
  expect(after.every((content) => content.includes(NEW))).toBe(true);
  expect(await onHost(rollBackScript('r'))).toBe(`Kubernetes ${OLD}\n`);
  expect(await contents()).toEqual(before);
  expect(await readFile(join(root, 'systemctl'), 'utf8')).toMatch(
    new RegExp(`restart kubelet Kubernetes ${OLD}\n$`),
  );
  await upgrade('r');
  expect(await contents()).toEqual(after);
});

test('a step that runs again keeps what was there before the first one', async () => {
  const before = await contents();
  await upgrade('r');
  await rm(join(root, 'var/lib/refit/kubeadm.journal'));
  await upgrade('r');
  await onHost(rollBackScript('r'));
  expect(await contents()).toEqual(before);
});

test('what an earlier rollout kept is not put back', async () => {
  await upgrade('r');
  const after = await contents();
  expect(await onHost(rollBackScript('another'))).toBe('');
  expect(await contents()).toEqual(after);
});

test('a failed rollout is followed by another: what was there before the first one stays the way back', async () => {
  const before = await contents();
  await upgrade('first');
  await upgrade('second');
  expect(await onHost(rollBackScript('second'))).toBe(`Kubernetes ${OLD}\n`);
  expect(await contents()).toEqual(before);
});

test('a flag that only a skipped kubeadm removes is gone before the kubelet starts; a roll-back brings it back', async () => {
  const before =
    'KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1 --pod-infra-container-image=r:5000/pause:3.10 --v=2"\n';
  const flags = async () => await readFile(join(root, 'var/lib/kubelet/kubeadm-flags.env'), 'utf8');
  await put('new/kubeadm', `#!/bin/sh\necho ${NEW}\n`);
  await put('var/lib/kubelet/kubeadm-flags.env', before);
  await upgrade('r');
  expect(await flags()).toBe('KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1 --v=2"\n');
  await onHost(rollBackScript('r'));
  expect(await flags()).toBe(before);
});

test('a rollout that ended before the kubelet was replaced is followed by another: its old configuration stays the way back', async () => {
  const before = await contents();
  const context = { rollout: 'first', version: NEW };
  await onHost(stepScript({ ...context, step: 'stage' }, stageBody({ binaries: BINARIES })));
  await onHost(stepScript({ ...context, step: 'kubeadm' }, kubeadmBody('node', 'worker', {})));
  await upgrade('second');
  expect(await onHost(rollBackScript('second'))).toBe(`Kubernetes ${OLD}\n`);
  expect(await contents()).toEqual(before);
});

test('what was changed by hand after a roll-back is the way back of the next rollout', async () => {
  await upgrade('first');
  await onHost(rollBackScript('first'));
  await put('var/lib/kubelet/config.yaml', 'kind: KubeletConfiguration\nmaxPods: 50\n');
  const before = await contents();
  await upgrade('second');
  expect(await onHost(rollBackScript('second'))).toBe(`Kubernetes ${OLD}\n`);
  expect(await contents()).toEqual(before);
});

test('a flag that the new kubelet does not know goes, and the quotes stay', async () => {
  const file = 'var/lib/kubelet/kubeadm-flags.env';
  await put('new/kubeadm', `#!/bin/sh\necho ${NEW}\n`);
  await put(file, "KUBELET_KUBEADM_ARGS='--v=2 --pod-infra-container-image=r/pause:3.10'\n");
  await upgrade('r');
  expect(await readFile(join(root, file), 'utf8')).toBe("KUBELET_KUBEADM_ARGS='--v=2'\n");
});
