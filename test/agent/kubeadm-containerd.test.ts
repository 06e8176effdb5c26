/**
 * Tests containerd on a host: it is staged where it is needed, replaced as a whole, restarted once, and restored byte
 * by byte.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  access,
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { parseFacts } from '../../src/dialects/kubeadm/host/probe.ts';
import {
  containerdBody,
  kubeletBody,
  probeScript,
  putBackScript,
  stageBody,
  stepScript,
} from '../../src/dialects/kubeadm/host/scripts.ts';
import { parseManifest } from '../../src/dialects/kubeadm/plan/manifest.ts';
import { run } from '../../tools/controlplane/run.ts';

const OLD = 'v2.3.2';
const NEW = 'v2.3.3';
const VERSION = 'v1.36.3';
const manifest = parseManifest(
  `{version: ${VERSION}, hosts: [{name: cp1, role: controlPlane}], binaries: {kubeadm: {path: /k8s}, kubelet: {path: /k8s}},
    containerd: {version: ${NEW.slice(1)}, binaries: {containerd: {path: /new/containerd},
      containerd-shim-runc-v2: {path: /new/containerd-shim-runc-v2}, runc: {path: /new/runc}}}}`,
  'm.yaml',
);
const { containerd, hosts } = manifest;
if (!containerd || !hosts[0]) throw new Error('the manifest lacks containerd');
const [host] = hosts;
const NAMES = ['containerd', 'containerd-shim-runc-v2', 'runc'];

let root = '';
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'refit-host-'));
  for (const folder of ['run', 'var/lib']) await mkdir(join(root, folder), { recursive: true });
  await put(
    'usr/bin/systemctl',
    '[ "$1" != restart ] || echo "$* $(containerd -v)" >>"$REFIT_ROOT/systemctl"\n',
  );
  await put(
    'k8s',
    `case $1 in version) echo ${VERSION} ;; *) echo Kubernetes ${VERSION} ;; esac\n`,
  );
  await put('usr/bin/kubelet', 'echo Kubernetes v1.36.2\n');
  await put('usr/bin/kubeadm', 'echo v1.36.2\n');
  for (const [folder, version] of [
    ['usr/bin', OLD],
    ['new', NEW],
  ] as const)
    await provide(folder, version);
});
afterEach(async () => await rm(root, { recursive: true }));

/** These programs print their versions in the format of the real programs. */
async function provide(folder: string, version: string): Promise<void> {
  await put(
    `${folder}/containerd`,
    `echo containerd github.com/containerd/containerd/v2 ${version} 1c4457e00facac03\n`,
  );
  await put(
    `${folder}/containerd-shim-runc-v2`,
    `printf 'containerd-shim-runc-v2:\\n  Version:  ${version}\\n'\n`,
  );
  await put(`${folder}/runc`, `printf 'runc version 1.3.0\\n'; : ${version}\n`);
}

async function put(path: string, content: string): Promise<void> {
  await mkdir(join(root, path, '..'), { recursive: true });
  await writeFile(join(root, path), `#!/bin/sh\n${content}`, { mode: 0o755 });
}

async function onHost(script: string): Promise<string> {
  const environment = { REFIT_ROOT: root, PATH: `${join(root, 'usr/bin')}:${process.env['PATH']}` };
  const { stdout, stderr } = await run('sh', ['-s'], { environment, input: script });
  return `${stdout}${stderr}`;
}

const context = { rollout: 'r', version: VERSION };
const stage = async (): Promise<string> =>
  await onHost(stepScript({ ...context, step: 'stage' }, stageBody(manifest)));
const replace = async (): Promise<string> =>
  await onHost(stepScript({ ...context, step: 'containerd' }, containerdBody(containerd)));
const contents = async (folder: string): Promise<string[]> =>
  await Promise.all(NAMES.map(async (name) => await readFile(join(root, folder, name), 'utf8')));
const restarts = async (): Promise<string> =>
  await readFile(join(root, 'systemctl'), 'utf8').catch(() => '');
const problems = async (): Promise<string[]> =>
  parseFacts(await onHost(probeScript(manifest, host, Date.now()))).problems.flatMap(
    ({ severity, message }) => (message.includes('containerd') ? [`${severity} ${message}`] : []),
  );

test('all of it is replaced, then restarted once; what was there can be put back, and is restarted, too', async () => {
  const before = await contents('usr/bin');
  expect([await problems(), await stage(), await replace()]).toEqual([[], '', '']);
  expect(await contents('usr/bin')).toEqual(await contents('new'));
  expect(await restarts()).toMatch(/^restart containerd .* v2\.3\.3 \S+\n$/);
  expect(await replace()).toBe('');
  expect(await onHost(putBackScript('r', containerd))).toContain(` ${OLD} `);
  expect(await contents('usr/bin')).toEqual(before);
  expect(await restarts()).toMatch(/v2\.3\.3 .*\nrestart containerd .* v2\.3\.2 \S+\n$/);
});

test('a host that has the version is left alone, whatever an earlier run has staged', async () => {
  await stage();
  await provide('usr/bin', NEW);
  await rm(join(root, 'var/lib/refit/kubeadm.journal'));
  const before = await contents('usr/bin');
  await provide('new', 'v2.9.9');
  expect([await problems(), await stage(), await replace()]).toEqual([[], '', '']);
  expect([await contents('usr/bin'), await restarts()]).toEqual([before, '']);
});

test('a containerd that cannot read its configuration is refused, because the upgrade restarts it', async () => {
  await put(
    'usr/bin/containerd',
    `case $1 in config) echo 'warning' >&2; echo 'containerd: toml: line 3' >&2; exit 1 ;; esac
echo containerd github.com/containerd/containerd/v2 ${OLD} 1c4457e00facac03\n`,
  );
  expect(await problems()).toEqual([
    'hard containerd would not start again, because it cannot read its configuration: containerd: toml: line 3',
  ]);
});

/** Runs the step for another rollout. The journal has no entry for this rollout yet. */
const another = async (step: 'stage' | 'containerd', to = containerd): Promise<string> => {
  const body = step === 'stage' ? stageBody({ ...manifest, containerd: to }) : containerdBody(to);
  return await onHost(stepScript({ rollout: 'r2', version: VERSION, step }, body));
};

test('the daemon comes last: where a shim cannot be placed, the next rollout replaces all of it, and can put it back', async () => {
  const before = await contents('usr/bin');
  await stage();
  await put(
    'usr/bin/cp',
    'case $* in *.runc.refit) echo "no room"; exit 1 ;; esac; exec /bin/cp "$@"\n',
  );
  expect(await replace()).toContain('no room');
  const [daemon] = await contents('usr/bin');
  expect(daemon).toBe(before[0]);
  await rm(join(root, 'usr/bin/cp'));
  expect([await another('stage'), await another('containerd')]).toEqual(['', '']);
  expect(await contents('usr/bin')).toEqual(await contents('new'));
  await onHost(putBackScript('r2', containerd));
  expect(await contents('usr/bin')).toEqual(before);
});

test('the copy of a containerd that worked stays until the kubelet works with the new one', async () => {
  const before = await contents('usr/bin');
  await stage();
  await replace();
  expect([await another('stage'), await another('containerd')]).toEqual(['', '']);
  expect(await contents('var/lib/refit/previous')).toEqual(before);
  await onHost(stepScript({ rollout: 'r2', version: VERSION, step: 'kubelet' }, kubeletBody({})));
  expect(await readdir(join(root, 'var/lib/refit/previous'))).not.toContain('.containerd');
});

test('where its file was replaced but it was not restarted, it is restarted', async () => {
  await provide('usr/bin', NEW);
  const daemon = join(root, 'old');
  await copyFile('/bin/sleep', daemon);
  await chmod(daemon, 0o755);
  const running = spawn(daemon, ['600']);
  onTestFinished(() => void running.kill());
  await once(running, 'spawn');
  await put(
    'usr/bin/systemctl',
    `case "$*" in *MainPID*) echo ${running.pid} ;; restart*) echo "$*" >>"$REFIT_ROOT/systemctl" ;; esac\n`,
  );
  await replace();
  expect(await restarts()).toBe('');
  await rm(daemon);
  await another('containerd');
  expect(await restarts()).toBe('restart containerd\n');
  running.kill();
  await once(running, 'exit');
});

test('what was put back is replaced again when the run goes on', async () => {
  await stage();
  await replace();
  await onHost(putBackScript('r', containerd));
  await replace();
  expect(await contents('usr/bin')).toEqual(await contents('new'));
});

test('a run that goes on with another version in the manifest stages that', async () => {
  await stage();
  await provide('new', 'v2.3.4');
  const body = containerdBody({ ...containerd, version: 'v2.3.4' });
  expect(await onHost(stepScript({ ...context, step: 'containerd' }, body))).toBe('');
  expect(await contents('usr/bin')).toEqual(await contents('new'));
  await rm(join(root, 'var/lib/refit/kubeadm.journal'));
  const wrong = containerdBody({ ...containerd, version: 'v2.3.5' });
  expect(await onHost(stepScript({ ...context, step: 'containerd' }, wrong))).toBe(
    'containerd.binaries.containerd-shim-runc-v2 has version v2.3.4, expected v2.3.5\n',
  );
});

test('nothing that was not kept counts as put back', async () => {
  await stage();
  await replace();
  await rm(join(root, 'var/lib/refit/previous/containerd'));
  expect(await onHost(putBackScript('r', containerd))).toBe('nothing was replaced\n');
});

test('what another rollout has kept is not put back', async () => {
  await stage();
  await replace();
  expect(await onHost(putBackScript('another', containerd))).toBe('nothing was replaced\n');
  expect(await contents('usr/bin')).toEqual(await contents('new'));
});

test('a plan refuses what is missing or has another version, and changes nothing', async () => {
  await provide('new', 'v2.3.1');
  await rm(join(root, 'new/containerd-shim-runc-v2'));
  expect(await problems()).toEqual([
    'hard containerd.binaries.containerd-shim-runc-v2.path: no file /new/containerd-shim-runc-v2 on this host',
    'hard containerd.binaries.containerd has version v2.3.1, expected v2.3.3',
  ]);
  expect(await readdir(join(root, 'var/lib'))).toEqual([]);
});

test('a plan refuses a unit whose restart would end all containers', async () => {
  await put(
    'usr/bin/systemctl',
    '[ "$*" != "show -p KillMode --value containerd" ] || echo control-group\n',
  );
  expect(await problems()).toEqual([
    'hard the unit of containerd lacks KillMode=process: its restart would end all containers',
  ]);
});

test('a file that is no program, such as a page of a proxy, is not run as commands', async () => {
  await provide('new', 'v2.3.3');
  const ran = join(root, 'ran');
  await writeFile(join(root, 'new/containerd'), `touch ${ran}\n`, { mode: 0o755 });
  expect(await problems()).toEqual([
    'hard containerd.binaries.containerd is no program: is it an error page?',
  ]);
  await expect(access(ran)).rejects.toThrow('ENOENT');
});

describe('a containerd beside the one that runs', () => {
  /** The containerd that systemd runs is in another folder than the first containerd in PATH. */
  const runFrom = async (folder: string): Promise<void> => {
    await mkdir(join(root, 'proc/4321'), { recursive: true });
    await symlink(join(root, folder, 'containerd'), join(root, 'proc/4321/exe'));
    await put('usr/bin/systemctl', 'case $* in *MainPID*containerd) echo 4321 ;; esac\n');
  };

  test.each([OLD, NEW])('at %s: a plan that would replace it is refused', async (version) => {
    await provide('opt/bin', OLD);
    await provide('usr/bin', version);
    await runFrom('opt/bin');
    const line =
      'hard the containerd that runs is /opt/bin/containerd, but the upgrade would replace /usr/bin/containerd, the first in PATH (';
    const found = await problems();
    expect(found.filter((text) => text.startsWith(line))).toHaveLength(1);
    expect(found).toHaveLength(1);
  });

  test('does not say which version the host has', async () => {
    await provide('opt/bin', 'v1.7.29');
    await runFrom('opt/bin');
    const { ground } = parseFacts(await onHost(probeScript(manifest, host, Date.now())));
    expect(ground.containerd).toBe('1.7.29');
  });

  test('is none where the one in PATH runs', async () => {
    await runFrom('usr/bin');
    expect(await problems()).toEqual([]);
  });
});
