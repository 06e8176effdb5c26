/**
 * Tests that a replaced binary keeps its capabilities and all other extended attributes. Mode and owner do not contain
 * them.
 */
import { execFileSync } from 'node:child_process';
import { chmod, link, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { copyAttributes } from '../../src/agent/state/file-attributes.ts';
import {
  kubeadmBody,
  kubeletBody,
  rollBackScript,
  stageBody,
  stepScript,
} from '../../src/dialects/kubeadm/host/scripts.ts';
import { KubeadmRig, VERSION } from '../attacks/kubeadm-rig.ts';
import { startNode, useCluster } from '../attacks/rig.ts';
import { testUnless, whyNoProgram } from '../support/left-out.ts';
import { NEW } from './rig.ts';

useCluster();

const CAPABILITY = 'cap_net_bind_service=ep';
const capabilityOf = (path: string): string =>
  execFileSync('getcap', [path], { encoding: 'utf8' }).trim().split(' ').at(-1) ?? '';
const setCapability = (path: string): Buffer => execFileSync('setcap', [CAPABILITY, path]);

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-attributes-'));
});
afterAll(async () => await rm(directory, { recursive: true }));

/** Returns the reason why no file can have a capability here; undefined if a file can have one. */
function whyNoCapability(): string | undefined {
  for (const program of ['setcap', 'getcap']) {
    const why = whyNoProgram(program, 'libcap2-bin');
    if (why !== undefined) return why;
  }
  if (process.getuid?.() !== 0) return 'only root may give a file a capability';
  const file = join(tmpdir(), `refit-capability-${process.pid}`);
  try {
    execFileSync('cp', ['/bin/true', file]);
    setCapability(file);
    return undefined;
  } catch (error) {
    return `a file in ${tmpdir()} cannot have a capability: ${String(error)}`;
  } finally {
    execFileSync('rm', ['-f', file]);
  }
}
const test = testUnless(whyNoCapability());

describe('the binary of k0s keeps a capability', () => {
  test.each([
    ['after an update', {}, 'Completed'],
    [
      'after a roll-back',
      { broken: 'hangs', flags: ['--restart-timeout', '3s'], restartDelayMs: 100 },
      'Failed',
    ],
  ] as const)('%s', async (_when, options, end) => {
    await using node = await startNode(options);
    setCapability(node.host.binary);
    node.startAgent();
    await node.send('/new', NEW);
    await node.end();
    expect(node.statuses.at(-1)).toBe(end);
    expect(capabilityOf(node.host.binary)).toBe(CAPABILITY);
  });

  test('and is not replaced nor restarted where it cannot be set', async () => {
    const programs = join(directory, 'programs');
    await mkdir(programs);
    const cp =
      '#!/bin/sh\ncase "$*" in *.refit-attributes-*) exit 0 ;; esac\necho "cp: no room for attributes" >&2\nexit 1\n';
    await writeFile(join(programs, 'cp'), cp, { mode: 0o755 });
    const environment = { PATH: `${programs}:${process.env['PATH']}` };
    await using node = await startNode({ environment });
    setCapability(node.host.binary);
    const before = await node.installed();
    node.startAgent();
    await node.send('/new', NEW);
    await node.end();
    expect(node.statuses.at(-1)).toBe('Failed');
    expect((await node.report())?.reason).toContain('no room for attributes');
    expect(await node.installed()).toBe(before);
    expect(capabilityOf(node.host.binary)).toBe(CAPABILITY);
    expect(node.host.starts).toBe(1);
  });
});

describe('a file with a capability', () => {
  test('gives it to another, with its mode, and nothing of its content', async () => {
    const [from, to] = ['from', 'to'].map((name) => join(directory, name)) as [string, string];
    await writeFile(from, 'old');
    await writeFile(to, 'new');
    await chmod(from, 0o750);
    setCapability(from);
    await copyAttributes(from, to, { cannot: (problem) => expect.fail(problem) });
    expect(capabilityOf(to)).toBe(CAPABILITY);
    expect((await stat(to)).mode & 0o777).toBe(0o750);
    expect(execFileSync('cat', [to], { encoding: 'utf8' })).toBe('new');
    await expect(
      copyAttributes(from, join(directory, 'no', 'file'), { cannot: () => undefined }),
    ).rejects.toThrow(`cannot get the owner, mode and extended attributes of ${from}: cp: `);
  });

  test('keeps it under a second name, as when a swap is repeated after a crash', async () => {
    const path = join(directory, 'one-file');
    const name = join(directory, 'second-name');
    await writeFile(path, 'new');
    setCapability(path);
    await link(path, name);
    await copyAttributes(path, name, { cannot: (problem) => expect.fail(problem) });
    expect(capabilityOf(name)).toBe(CAPABILITY);
  });

  test('kubelet and kubeadm keep it, also after a roll-back', async () => {
    await using rig = await KubeadmRig.create();
    const binary = (version: string): string =>
      `#!/bin/sh\ncase $1 in --version) echo "Kubernetes ${version}" ;; *) echo ${version} ;; esac\n`;
    for (const name of ['kubeadm', 'kubelet']) {
      await rig.put(`usr/bin/${name}`, binary('v1.35.0'), 0o755);
      setCapability(rig.at(`usr/bin/${name}`));
      await rig.put(`srv/${name}`, binary(VERSION), 0o755);
    }
    const binaries = { kubeadm: { path: '/srv/kubeadm' }, kubelet: { path: '/srv/kubelet' } };
    const context = { rollout: 'r', version: VERSION };
    for (const script of [
      stepScript({ ...context, step: 'stage' }, stageBody({ binaries })),
      stepScript({ ...context, step: 'kubeadm' }, kubeadmBody('node', 'worker', {})),
      stepScript({ ...context, step: 'kubelet' }, kubeletBody({})),
    ])
      await rig.onHost(script);
    const told = async (): Promise<string[]> => [
      await rig.onHost('kubelet --version'),
      ...['kubeadm', 'kubelet'].map((name) => capabilityOf(rig.at(`usr/bin/${name}`))),
    ];
    expect(await told()).toEqual([`Kubernetes ${VERSION}\n`, CAPABILITY, CAPABILITY]);
    await rig.onHost(rollBackScript('r'));
    expect(await told()).toEqual(['Kubernetes v1.35.0\n', CAPABILITY, CAPABILITY]);
  });

  test('a step stops before the restart if it cannot be set', async () => {
    await using rig = await KubeadmRig.create();
    await rig.program('kubelet', 'echo "Kubernetes v1.35.0"');
    await rig.put('var/lib/refit/staged/kubelet', 'new', 0o755);
    await rig.program('systemctl', 'echo "$*" >>"$REFIT_ROOT/restarts"');
    await rig.program(
      'cp',
      'case "$*" in *.try) exit 0 ;; *--attributes-only*) echo "cp: no room for attributes" >&2; exit 1 ;; esac; exec /bin/cp "$@"',
    );
    const step = { step: 'kubelet', rollout: 'r', version: VERSION } as const;
    const said = await rig.onHost(stepScript(step, kubeletBody({})));
    expect(said).toContain('cannot get the owner, mode and extended attributes of');
    expect(said).toContain('no room for attributes');
    expect(await rig.onHost('kubelet --version; cat "$REFIT_ROOT/restarts" 2>/dev/null')).toBe(
      'Kubernetes v1.35.0\n',
    );
  });

  test('a step and its roll-back go on where cp knows the option and refuses it', async () => {
    await using rig = await KubeadmRig.create();
    const kubelet = (version: string): string => `#!/bin/sh\necho "Kubernetes ${version}"\n`;
    await rig.put('usr/bin/kubelet', kubelet('v1.35.0'), 0o755);
    await rig.put('var/lib/refit/staged/kubelet', kubelet(VERSION), 0o755);
    const refusing = (pattern: string): string =>
      `case "$*" in ${pattern}) echo "cp: cannot preserve extended attributes" >&2; exit 1 ;; esac; exec /bin/cp "$@"`;
    await rig.program('cp', refusing('*xattr*'));
    const step = { step: 'kubelet', rollout: 'r', version: VERSION } as const;
    await rig.onHost(stepScript(step, kubeletBody({})));
    expect(await rig.onHost('kubelet --version')).toBe(`Kubernetes ${VERSION}\n`);
    await rig.program('cp', refusing('*.try) exit 0 ;; *--attributes-only*'));
    await rig.onHost(rollBackScript('r'));
    expect(await rig.onHost('kubelet --version')).toBe('Kubernetes v1.35.0\n');
  });
});
