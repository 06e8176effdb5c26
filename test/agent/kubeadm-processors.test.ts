/**
 * Tests one manifest for hosts with different processors. Each host uses the files for its processor, and refuses files
 * for another processor.
 */
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import type { Host } from '../../src/dialects/kubeadm/host/host.ts';
import { parseFacts } from '../../src/dialects/kubeadm/host/probe.ts';
import {
  prepareScript,
  probeScript,
  stageBody,
  stepScript,
} from '../../src/dialects/kubeadm/host/scripts.ts';
import { attackedManifest, KubeadmRig, VERSION } from '../attacks/kubeadm-rig.ts';

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');
const binary = (arch: string): string =>
  `#!/bin/sh\n# ${arch}\ncase $1 in --version) echo "Kubernetes ${VERSION}" ;; *) echo ${VERSION} ;; esac\n`;
const MACHINES = [
  ['amd64', 'x86_64'],
  ['arm64', 'aarch64'],
] as const;
const sha256 = { amd64: hashOf(binary('amd64')), arm64: hashOf(binary('arm64')) };

test.each(MACHINES)(
  'a host with %s gets its own file and its own download',
  async (arch, machine) => {
    await using rig = await KubeadmRig.create();
    await rig.program('uname', `[ "$1" = -m ] && echo ${machine} || echo 6.1.0`);
    // Serves the file that the URL names.
    await rig.program(
      'curl',
      'read -r line; while [ "$1" != -o ]; do shift; done; name=${line##*/}; [ "$2" = /dev/null ] || cp "$REFIT_ROOT/files/${name%?}" "$2"',
    );
    for (const [each] of MACHINES) {
      await rig.put(`srv/${each}/kubelet`, binary(each), 0o755);
      await rig.put(`files/${each}`, binary(each));
    }
    const { manifest, host } = attackedManifest({
      kubeadm: { url: 'https://example.com/kubeadm/{arch}', sha256 },
      kubelet: { path: '/srv/{arch}/kubelet', sha256 },
    });
    const { problems } = parseFacts(await rig.onHost(probeScript(manifest, host, Date.now())));
    expect(problems.filter(({ message }) => message.includes('binaries.'))).toEqual([]);
    const context = { step: 'stage', rollout: 'r', version: VERSION } as const;
    expect(await rig.onHost(stepScript(context, stageBody(manifest)))).toBe('');
    for (const name of ['kubeadm', 'kubelet'])
      expect(await rig.onHost(`cat "$REFIT_ROOT/var/lib/refit/staged/${name}"`)).toBe(binary(arch));
  },
);

test('a host with binaries of its own gets these, and a message names the field that they stand in', async () => {
  await using rig = await KubeadmRig.create();
  await rig.program('uname', '[ "$1" = -m ] && echo aarch64 || echo 6.1.0');
  for (const [each] of MACHINES)
    for (const name of ['kubeadm', 'kubelet'])
      await rig.put(`srv/${each}/${name}`, binary(each), 0o755);
  const forAll = { kubeadm: { path: '/srv/amd64/kubeadm' }, kubelet: { path: '/srv/none' } };
  const { manifest, host } = attackedManifest(forAll);
  const own = { ...host, binaries: { kubelet: { path: '/srv/arm64/kubelet' } } };
  const probed = async (of: Host): Promise<string[]> =>
    parseFacts(await rig.onHost(probeScript(manifest, of, Date.now()))).problems.flatMap(
      ({ message }) => (message.includes('binaries') ? [message] : []),
    );
  expect(await probed(host)).toEqual(['binaries.kubelet.path: no file /srv/none on this host']);
  expect(await probed(own)).toEqual([]);
  const wrong = { ...host, binaries: { kubelet: { path: '/srv/gone' } } };
  const problem = 'hosts[cp1].binaries.kubelet.path: no file /srv/gone on this host';
  expect(await probed(wrong)).toEqual([problem]);
  expect(await rig.onHost(prepareScript(manifest, wrong, false))).toContain(problem);
  // This host overrides only kubeadm, so the message about kubelet names the field for all hosts.
  const another = { ...host, binaries: { kubeadm: { path: '/srv/arm64/kubeadm' } } };
  expect(await probed(another)).toEqual(['binaries.kubelet.path: no file /srv/none on this host']);
  await rig.onHost(prepareScript(manifest, own, false));
  for (const [name, arch] of [
    ['kubeadm', 'amd64'],
    ['kubelet', 'arm64'],
  ] as const)
    expect(await rig.onHost(`cat "$REFIT_ROOT/var/lib/refit/staged/${name}"`)).toBe(binary(arch));
});

/** Magic number, 64 bits, little endian, and the machine as the 19th byte. */
function program(machine: number): Buffer {
  const header = Buffer.alloc(64);
  header.write('\x7fELF\x02\x01\x01', 'latin1');
  header.writeUInt16LE(machine, 18);
  return header;
}

test.each([
  ['x86_64', 183, 'aarch64; this host is x86-64'],
  ['aarch64', 62, 'x86-64; this host is aarch64'],
  ['riscv64', 62, 'x86-64; this host is riscv64'],
])(
  'a host with %s refuses a binary of another processor before anything is replaced',
  async (machine, other, found) => {
    await using rig = await KubeadmRig.create();
    await rig.program('uname', `[ "$1" = -m ] && echo ${machine} || echo 6.1.0`);
    for (const name of ['kubeadm', 'kubelet']) {
      await rig.put(`srv/${name}`, '', 0o755);
      await writeFile(rig.at(`srv/${name}`), program(other));
    }
    const paths = { kubeadm: { path: '/srv/kubeadm' }, kubelet: { path: '/srv/kubelet' } };
    const { manifest, host } = attackedManifest(paths);
    const problem = `binaries.kubeadm is for another processor (${found})`;
    const { problems } = parseFacts(await rig.onHost(probeScript(manifest, host, Date.now())));
    expect(problems.map(({ message }) => message)).toContain(problem);
    expect(await rig.onHost(prepareScript(manifest, host, false))).toBe(`${problem}\n`);
  },
);

test('a processor without a hash is refused, and its files are never taken for files without one', async () => {
  await using rig = await KubeadmRig.create();
  await rig.program('uname', '[ "$1" = -m ] && echo s390x || echo 6.1.0');
  for (const name of ['kubeadm', 'kubelet']) await rig.put(`srv/${name}`, rig.evil, 0o755);
  const own = { path: '/srv/kubeadm', sha256 };
  const { manifest, host } = attackedManifest({ kubeadm: own, kubelet: own });
  const problem = 'binaries.kubeadm.sha256 has no hash for s390x, the processor of this host';
  const { problems } = parseFacts(await rig.onHost(probeScript(manifest, host, Date.now())));
  expect(problems.map(({ message }) => message)).toContain(problem);
  expect(await rig.onHost(prepareScript(manifest, host, false))).toBe(`${problem}\n`);
  expect(rig.isOwned).toBe(false);
});
