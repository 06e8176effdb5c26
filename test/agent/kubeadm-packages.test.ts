/** A host whose binaries are packages of Debian: real dpkg and apt on an overlay of this machine, with a repository of files. */
import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseManifest } from '../../src/dialects/kubeadm/manifest.ts';
import { parseFacts } from '../../src/dialects/kubeadm/probe.ts';
import {
  kubeadmBody,
  kubeletBody,
  probeScript,
  rollBackScript,
  stageBody,
  stepScript,
} from '../../src/dialects/kubeadm/scripts.ts';
import { run } from '../../tools/controlplane/run.ts';
import { must } from '../../tools/release/commands.ts';

const [OLD, NEW] = ['v1.36.2', 'v1.36.3'];
const manifest = parseManifest(
  `{version: ${NEW}, hosts: [{name: w1, role: worker}, {name: cp1, role: controlPlane}], binaries: {kubeadm: {path: /none}, kubelet: {path: /none}}}`,
  'm.yaml',
);
const [host] = manifest.hosts;

async function whyNot(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'only root may mount';
  return (await run('sh', ['-c', 'command -v apt-get dpkg-deb unshare'])).ok ? undefined : 'this is no Debian';
}

let directory = '';
const at = (...path: string[]): string => join(directory, ...path);

async function makePackage(name: string, version: string): Promise<string> {
  const folder = at('packages', `${name}-${version}`);
  await mkdir(join(folder, 'DEBIAN'), { recursive: true });
  await mkdir(join(folder, 'usr/bin'), { recursive: true });
  const control = `Package: ${name}\nVersion: ${version.slice(1)}-1.1\nArchitecture: all\nMaintainer: none\nDescription: none\n`;
  await writeFile(join(folder, 'DEBIAN/control'), control);
  const said = name === 'kubeadm' ? version : `Kubernetes ${version}`;
  await writeFile(join(folder, 'usr/bin', name), `#!/bin/sh\necho ${said}\n`);
  await chmod(join(folder, 'usr/bin', name), 0o755);
  const file = `${name}_${version.slice(1)}.deb`;
  await must('dpkg-deb', ['--build', '--root-owner-group', folder, at('repository', file)]);
  const hash = createHash('sha256').update(await readFile(at('repository', file)));
  const { size } = await stat(at('repository', file));
  return `${control}Filename: ./${file}\nSize: ${size}\nSHA256: ${hash.digest('hex')}\n`;
}

/** As root of the machine, whose changes stay for the next script. */
async function onHost(script: string): Promise<string> {
  await writeFile(at('script.sh'), script);
  const mounts = ['usr', 'etc', 'var'].map(
    (name) => `mkdir -p ${name} up/${name} work/${name}
mount -t overlay -o lowerdir=/${name},upperdir=up/${name},workdir=work/${name} overlay root/${name}`,
  );
  const enter = `cd ${directory}
${mounts.join('\n')}
mount --bind repository root/repository
mount --rbind /dev root/dev
mount -t proc proc root/proc
mount -t tmpfs none root/run
cp script.sh root/script.sh
exec chroot root sh /script.sh`;
  const namespaces = ['--mount', '--net', '--pid', '--fork', '--kill-child'];
  const { stdout, stderr } = await run('unshare', [...namespaces, 'sh', '-ec', enter], {
    environment: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', DEBIAN_FRONTEND: 'noninteractive' },
  });
  return `${stdout}${stderr}`;
}

const why = await whyNot();
if (why !== undefined || host === undefined) test(`left out: ${why}`, () => expect(why).toBeDefined());
else
  describe('a host with packages', () => {
    beforeAll(async () => {
      directory = await mkdtemp(join(tmpdir(), 'refit-packages-'));
      for (const folder of ['repository', 'root/repository', 'root/tmp', 'root/dev', 'root/proc', 'root/run'])
        await mkdir(at(folder), { recursive: true });
      for (const folder of ['usr', 'etc', 'var']) await mkdir(at('root', folder));
      await run('sh', ['-c', `for link in /bin /sbin /lib*; do cp -a "$link" ${at('root')}; done`]);
      const listed = [];
      for (const name of ['kubeadm', 'kubelet'])
        for (const version of [OLD, NEW]) listed.push(await makePackage(name, version));
      await writeFile(at('repository/Packages'), listed.join('\n'));
      const said = await onHost(`set -e
rm -rf /etc/apt/sources.list.d/* /var/lib/apt/lists/*
echo 'deb [trusted=yes] file:/repository ./' >/etc/apt/sources.list
apt-get -qq update
apt-get -qqy install kubeadm=1.36.2-1.1 kubelet=1.36.2-1.1 >/dev/null
apt-mark -qq hold kubelet
printf '#!/bin/sh\\nexit 0\\n' >/usr/bin/systemctl
chmod 755 /usr/bin/systemctl
kubelet --version`);
      expect(said).toContain(`Kubernetes ${OLD}\n`);
    }, 120_000);
    afterAll(async () => await rm(directory, { recursive: true }));

    const context = { rollout: 'r', version: NEW };
    const state = 'kubeadm; kubelet; dpkg-query -W kubeadm kubelet; apt-mark showhold';
    const installed = (version: string): string => {
      const revision = `${version.slice(1)}-1.1`;
      return `${version}\nKubernetes ${version}\nkubeadm\t${revision}\nkubelet\t${revision}\nkubelet\n`;
    };

    test('a plan says that apt-get replaces them, and asks for no file of the manifest', async () => {
      const { problems } = parseFacts(await onHost(probeScript(manifest, host, Date.now())));
      const messages = problems.map(({ severity, message }) => `${severity} ${message}`);
      expect(messages).toContain('warn kubelet belongs to a package: apt-get replaces it, not binaries.kubelet');
      expect(messages.filter((message) => message.includes('/none'))).toEqual([]);
    });

    test('a plan refuses what apt does not know', async () => {
      const other = probeScript({ ...manifest, version: 'v1.37.0' }, host, Date.now());
      const { problems } = parseFacts(await onHost(other));
      expect(problems.map(({ severity, message }) => `${severity} ${message}`)).toContain(
        'hard apt knows no kubelet=1.37.0-*: set up the repository of that minor version, then run apt-get update',
      );
    });

    test('all steps: the packages have the version, and a hold stays', async () => {
      const { binaries } = manifest;
      expect(await onHost(stepScript({ ...context, step: 'stage' }, stageBody(binaries)))).toBe('');
      expect(await onHost(state)).toBe(installed(OLD));
      await onHost(stepScript({ ...context, step: 'kubeadm' }, kubeadmBody('node', 'worker', {})));
      await onHost(stepScript({ ...context, step: 'kubelet' }, kubeletBody({})));
      expect(await onHost(state)).toBe(installed(NEW));
    });

    test('a roll-back puts the files back, and the next run installs the packages again', async () => {
      await onHost(rollBackScript('r'));
      expect(await onHost('kubelet')).toBe(`Kubernetes ${OLD}\n`);
      for (const [step, body] of [
        ['stage', stageBody(manifest.binaries)],
        ['kubeadm', kubeadmBody('node', 'worker', {})],
        ['kubelet', kubeletBody({})],
      ] as const)
        await onHost(stepScript({ ...context, rollout: 'r2', step }, body));
      expect(await onHost(state)).toBe(installed(NEW));
    });

    test('where apt-get fails, a hold stays, and the same run goes on once it works', async () => {
      await onHost(rollBackScript('r2'));
      const staging = stepScript({ ...context, rollout: 'r3', step: 'stage' }, stageBody(manifest.binaries));
      const swapping = stepScript({ ...context, rollout: 'r3', step: 'kubelet' }, kubeletBody({}));
      await onHost(staging);
      // As apt-get does with what is held: the hold goes first.
      await onHost(`cat >/usr/sbin/apt-get <<'END'
#!/bin/sh
apt-mark -qq unhold kubelet
echo 'no room'
exit 100
END
chmod 755 /usr/sbin/apt-get`);
      expect(await onHost(swapping)).toContain('no room');
      expect(await onHost('kubelet; apt-mark showhold')).toBe(`Kubernetes ${OLD}\nkubelet\n`);
      await onHost('rm /usr/sbin/apt-get');
      await onHost(swapping);
      expect(await onHost('kubelet; apt-mark showhold')).toBe(`Kubernetes ${NEW}\nkubelet\n`);
    });

    test('a plan refuses a binary of another package', async () => {
      const lists = '/var/lib/dpkg/info/kubeadm.list';
      await onHost(
        `cat /var/lib/dpkg/info/kubelet.list >>${lists}; sed -i '/kubelet/d' /var/lib/dpkg/info/kubelet.list`,
      );
      const { problems } = parseFacts(await onHost(probeScript(manifest, host, Date.now())));
      expect(problems.map(({ severity, message }) => `${severity} ${message}`)).toContain(
        'hard kubelet belongs to package kubeadm: install package kubelet, or a file of its own, first',
      );
    });
  });
