/**
 * Tests hosts whose binaries are packages, with a repository of files. Uses real dpkg and apt, dnf 4 and 5, zypper and
 * rpm, on overlays of this machine.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseFacts } from '../../src/dialects/kubeadm/host/probe.ts';
import {
  containerdBody,
  kubeadmBody,
  kubeletBody,
  probeScript,
  putBackScript,
  rollBackScript,
  stageBody,
  stepScript,
} from '../../src/dialects/kubeadm/host/scripts.ts';
import { parseManifest } from '../../src/dialects/kubeadm/plan/manifest.ts';
import { cacheDirectory } from '../../tools/controlplane/build.ts';
import { run } from '../../tools/controlplane/run.ts';
import { must } from '../../tools/release/commands.ts';
import { leftOut } from '../support/left-out.ts';

const OLD = 'v1.36.2';
const NEW = 'v1.36.3';
/** This version needs a package that no repository has. */
const LACKING = 'v1.36.4';
const manifest = parseManifest(
  `{version: ${NEW}, hosts: [{name: w1, role: worker}, {name: cp1, role: controlPlane}], binaries: {kubeadm: {path: /none}, kubelet: {path: /none}}}`,
  'm.yaml',
);

interface Kind {
  /** The name of the kind. If undefined, the name of the manager is used. */
  readonly name?: string;
  readonly manager: string;
  /** The folder with additional programs, which is mounted over the programs of this machine. */
  readonly layer?: string;
  /** Writes the packages of both versions into the folder `repository`. */
  readonly makeRepository: () => Promise<void>;
  /** Sets up the repository, and installs the old versions; kubelet is held. */
  readonly setUp: string;
  /** Prints the packages with their versions, and what is held. */
  readonly state: string;
  readonly stateAt: (version: string) => string;
  readonly refresh: string;
}

let directory = '';
const at = (...path: string[]): string => join(directory, ...path);
const said = (name: string, version: string): string =>
  name === 'kubeadm' ? version : `Kubernetes ${version}`;
const each = async (
  versions: readonly string[],
  make: (name: string, version: string) => Promise<void>,
): Promise<void> => {
  for (const name of ['kubeadm', 'kubelet'])
    for (const version of versions) await make(name, version);
};

/**
 * Runs the script as root in an overlay over the root file system of this machine. The changes of the script stay for
 * the next script.
 */
async function onHost(script: string, layer?: string): Promise<string> {
  await writeFile(at('script.sh'), script);
  const mounts = ['usr', 'etc', 'var'].map((name) => {
    const programs =
      layer === undefined || !existsSync(join(layer, name)) ? '' : `${join(layer, name)}:`;
    return `mkdir -p ${name} up/${name} work/${name}
mount -t overlay -o lowerdir=${programs}/${name},upperdir=up/${name},workdir=work/${name} overlay root/${name}`;
  });
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
  // The rpm of Debian prints this at each call.
  return `${stdout}${stderr}`.replaceAll(
    /^rpm: (RPM should not be used|However assuming).*\n/gm,
    '',
  );
}

async function makeDebs(): Promise<void> {
  const listed: string[] = [];
  const make = async (name: string, version: string, file: string, says: string): Promise<void> => {
    const folder = at('packages', `${name}-${version}`);
    await mkdir(join(folder, 'DEBIAN'), { recursive: true });
    await mkdir(join(folder, 'usr/bin'), { recursive: true });
    const control = `Package: ${name}\nVersion: ${version}\nArchitecture: all\nMaintainer: none\nDescription: none\n`;
    await writeFile(join(folder, 'DEBIAN/control'), control);
    await writeFile(join(folder, 'usr/bin', file), `#!/bin/sh\necho ${says}\n`);
    await chmod(join(folder, 'usr/bin', file), 0o755);
    const deb = `${name}_${version}.deb`;
    await must('dpkg-deb', ['--build', '--root-owner-group', folder, at('repository', deb)]);
    const hash = createHash('sha256').update(await readFile(at('repository', deb)));
    const { size } = await stat(at('repository', deb));
    listed.push(`${control}Filename: ./${deb}\nSize: ${size}\nSHA256: ${hash.digest('hex')}\n`);
  };
  await each(
    [OLD, NEW],
    async (name, version) => await make(name, `${version.slice(1)}-1.1`, name, said(name, version)),
  );
  // The versions have the formats of Docker and Debian.
  for (const [name, end] of [
    ['containerd.io', '-1~debian.12'],
    ['containerd', '~ds1-1'],
  ] as const)
    for (const version of ['2.3.2', '2.3.3'])
      await make(
        name,
        `${version}${end}`,
        'containerd',
        `containerd github.com/containerd/containerd ${version}${end.replace(/-.*/, '')} 1`,
      );
  await writeFile(at('repository/Packages'), listed.join('\n'));
}

/** Writes the packages into a folder that is not the folder of the index, as the repositories of Kubernetes do. */
const makeRpms = (layer: string) => async (): Promise<void> => {
  await each([OLD, NEW, LACKING], async (name, version) => {
    const spec = `Name: ${name}
Version: ${version.slice(1)}
Release: 150500.1.1
Summary: none
License: none
BuildArch: noarch
${version === LACKING ? 'Requires: conntrack-tools\n' : ''}%description
none
%install
mkdir -p %{buildroot}/usr/bin
printf '#!/bin/sh\\necho ${said(name, version)}\\n' >%{buildroot}/usr/bin/${name}
%files
%attr(755,root,root) /usr/bin/${name}
`;
    await writeFile(at('repository', `${name}-${version}.spec`), spec);
  });
  const build = 'rpmbuild -bb --quiet --define "_topdir /tmp/b" /repository/*.spec';
  const found = await onHost(
    `{ ${build} && cp -r /tmp/b/RPMS/noarch /repository && createrepo_c -q /repository; } >/tmp/log 2>&1 || cat /tmp/log`,
    layer,
  );
  expect(found).toBe('');
};

/** The folder into which `.ci/run` unpacks these programs. */
const layerOf = (name: string): string => join(cacheDirectory(process.env), '..', name);
const STUB = "printf '#!/bin/sh\\nexit 0\\n' >/usr/bin/systemctl && chmod 755 /usr/bin/systemctl\n";
const rpmState = 'kubeadm; kubelet; rpm -q --qf "%{NAME} %{VERSION}\\n" kubeadm kubelet;';
const rpmStateAt = (version: string): string =>
  `${version}\nKubernetes ${version}\nkubeadm ${version.slice(1)}\nkubelet ${version.slice(1)}\n`;

const KINDS: readonly Kind[] = [
  {
    manager: 'apt-get',
    makeRepository: makeDebs,
    // Configures apt as on a host. The images of containers make apt read all packages at each start, and let other
    // programs inspect its work.
    setUp: `set -e
rm -f /etc/apt/apt.conf.d/docker-clean /etc/apt/apt.conf.d/20packagekit /etc/apt/apt.conf.d/50appstream
rm -rf /etc/apt/sources.list.d/* /var/lib/apt/lists/*
echo 'deb [trusted=yes] file:/repository ./' >/etc/apt/sources.list
apt-get -qq update
apt-get -qqy install kubeadm=1.36.2-1.1 kubelet=1.36.2-1.1 >/dev/null
apt-mark -qq hold kubelet`,
    state: 'kubeadm; kubelet; dpkg-query -W kubeadm kubelet; apt-mark showhold',
    stateAt: (version) => {
      const revision = `${version.slice(1)}-1.1`;
      return `${version}\nKubernetes ${version}\nkubeadm\t${revision}\nkubelet\t${revision}\nkubelet\n`;
    },
    refresh: 'apt-get update',
  },
  {
    manager: 'dnf',
    layer: layerOf('dnf'),
    makeRepository: makeRpms(layerOf('dnf')),
    // Configures the repository as the documentation of Kubernetes does. `local` is a plugin in the package of Debian.
    setUp: `set -e
mkdir -p /etc/rpm /etc/yum.repos.d
echo '%_dbpath /var/lib/rpm' >/etc/rpm/macros
printf '[main]\\nenabled=0\\n' >/etc/dnf/plugins/local.conf
echo 9 >/etc/dnf/vars/releasever
printf '[kubernetes]\\nname=k\\nbaseurl=file:///repository\\ngpgcheck=0\\nexclude=kubelet kubeadm\\n' >/etc/yum.repos.d/kubernetes.repo
sed -i s/gpgcheck=True/gpgcheck=False/ /etc/dnf/dnf.conf
dnf -qy --disableexcludes=kubernetes install kubeadm-1.36.2 kubelet-1.36.2 >/dev/null
dnf -q versionlock add kubelet >/dev/null`,
    state: `${rpmState} grep kube /etc/dnf/plugins/versionlock.list`,
    stateAt: (version) => `${rpmStateAt(version)}kubelet-0:${version.slice(1)}-150500.1.1.*\n`,
    refresh: 'dnf makecache',
  },
  {
    name: 'dnf 5',
    manager: 'dnf',
    layer: layerOf('dnf5'),
    makeRepository: makeRpms(layerOf('dnf5')),
    // Configures dnf as on Fedora, where `dnf` is dnf5. Sets `releasever`, because the release of Debian is not a
    // number.
    setUp: `set -e
ln -s dnf5 /usr/bin/dnf
mkdir -p /etc/rpm /etc/yum.repos.d
echo '%_dbpath /var/lib/rpm' >/etc/rpm/macros
printf '[main]\\nenabled=0\\n' >/etc/dnf/libdnf5-plugins/local.conf
echo 41 >/etc/dnf/vars/releasever
printf '[kubernetes]\\nname=k\\nbaseurl=file:///repository\\ngpgcheck=0\\nexclude=kubelet kubeadm\\n' >/etc/yum.repos.d/kubernetes.repo
sed -i s/gpgcheck=True/gpgcheck=False/ /etc/dnf/dnf.conf
dnf -qy --setopt=disable_excludes=kubernetes install kubeadm-1.36.2 kubelet-1.36.2 >/dev/null 2>&1
dnf -q versionlock add kubelet >/dev/null`,
    // The lock that `setUp` adds names no epoch, so `sed` removes the epoch of later locks.
    state: `${rpmState} dnf -q versionlock list | sed -n 's/^evr = \\(0:\\)*/lock /p'`,
    stateAt: (version) => `${rpmStateAt(version)}lock ${version.slice(1)}-150500.1.1\n`,
    refresh: 'dnf makecache',
  },
  {
    manager: 'zypper',
    layer: layerOf('zypper'),
    makeRepository: makeRpms(layerOf('zypper')),
    setUp: `set -e
mkdir -p /etc/rpm /etc/zypp/repos.d
echo '%_dbpath /var/lib/rpm' >/etc/rpm/macros
zypper -nq addrepo -G file:///repository kubernetes
zypper -nq refresh
zypper -nq install --oldpackage kubeadm=1.36.2 kubelet=1.36.2 >/dev/null
zypper -nq addlock kubelet >/dev/null`,
    state: `${rpmState} zypper -q locks | grep -o kubelet`,
    stateAt: (version) => `${rpmStateAt(version)}kubelet\n`,
    refresh: 'zypper refresh',
  },
];

async function whyNot({ layer }: Kind): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'only root may mount';
  if (layer !== undefined && !existsSync(layer)) return `${layer} is missing: .ci/run unpacks it`;
  return (await run('sh', ['-c', 'command -v apt-get dpkg-deb unshare'])).ok
    ? undefined
    : 'this is no Debian';
}

for (const kind of KINDS) {
  const why = await whyNot(kind);
  if (why === undefined)
    describe(`a host with packages of ${kind.name ?? kind.manager}`, () => suite(kind));
  else leftOut(`a host with packages of ${kind.name ?? kind.manager}`, why);
}

function suite({ manager, layer, makeRepository, setUp, state, stateAt, refresh }: Kind): void {
  const [host] = manifest.hosts;
  const context = { rollout: 'r', version: NEW };
  const here = async (script: string): Promise<string> => await onHost(script, layer);
  const messages = async (version: string): Promise<string[]> => {
    if (!host) throw new Error('the manifest has no host');
    const { problems } = parseFacts(
      await here(probeScript({ ...manifest, version }, host, Date.now())),
    );
    return problems.map(({ severity, message }) => `${severity} ${message}`);
  };
  const upgrade = async (rollout: string, version = NEW): Promise<void> => {
    for (const [step, body] of [
      ['stage', stageBody(manifest)],
      ['kubeadm', kubeadmBody('node', 'worker', {})],
      ['kubelet', kubeletBody({})],
    ] as const)
      await here(stepScript({ rollout, version, step }, body));
  };

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'refit-packages-'));
    for (const folder of [
      'repository',
      'root/repository',
      'root/tmp',
      'root/dev',
      'root/proc',
      'root/run',
    ])
      await mkdir(at(folder), { recursive: true });
    for (const folder of ['usr', 'etc', 'var']) await mkdir(at('root', folder));
    await run('sh', ['-c', `for link in /bin /sbin /lib*; do cp -a "$link" ${at('root')}; done`]);
    await makeRepository();
    await here(`${setUp}\n${STUB}`);
    expect(await here(state)).toBe(stateAt(OLD));
  }, 120_000);
  afterAll(async () => await rm(directory, { recursive: true }));

  test('a plan says who replaces them, and asks for no file of the manifest', async () => {
    const found = await messages(NEW);
    expect(found).toContain(
      `warn kubelet belongs to a package: ${manager} replaces it, not binaries.kubelet`,
    );
    expect(found.filter((message) => /\/none|knows no/.test(message))).toEqual([]);
  });

  test('a plan refuses a version that no package repository has', async () => {
    expect(await messages('v1.37.0')).toContain(
      `hard ${manager} knows no kubelet 1.37.0: set up the repository of that minor version, then run ${refresh}`,
    );
  });

  test('the upgrade steps install the packages of the new version and keep the package hold', async () => {
    expect(await here(stepScript({ ...context, step: 'stage' }, stageBody(manifest)))).toBe('');
    expect(await here(state)).toBe(stateAt(OLD));
    await upgrade('r');
    expect(await here(state)).toBe(stateAt(NEW));
  });

  test('a roll-back puts the files back, and the next run installs the packages again', async () => {
    await here(rollBackScript('r'));
    expect(await here('kubelet')).toBe(`Kubernetes ${OLD}\n`);
    if (manager === 'apt-get') await failOnce(here);
    await upgrade('r2');
    expect(await here(state)).toBe(stateAt(NEW));
  });

  test('the upgrade steps can return the packages to the previous patch version and keep the package hold', async () => {
    await upgrade('r3', OLD);
    expect(await here(state)).toBe(stateAt(OLD));
    await upgrade('r4');
    expect(await here(state)).toBe(stateAt(NEW));
  });

  test('a fetch that is cut off leaves no folder that counts as complete', async () => {
    const other = { rollout: 'r0', version: 'v1.37.0' };
    expect(await here(stepScript({ ...other, step: 'stage' }, stageBody(manifest)))).toContain(
      'cannot fetch',
    );
    expect((await here('ls /var/lib/refit/staged')).split('\n')).not.toContain('kubeadm.packages');
  });

  if (manager === 'apt-get') ofApt(here, messages);
  else ofRpm(here, messages);
}

/** Tests that a hold stays if apt-get fails. The same run continues when apt-get works again. */
async function failOnce(here: (script: string) => Promise<string>): Promise<void> {
  const context = { rollout: 'r2', version: NEW };
  await here(stepScript({ ...context, step: 'stage' }, stageBody(manifest)));
  // Removes the hold before it fails, as apt-get does with held packages.
  await here(`cat >/usr/sbin/apt-get <<'END'
#!/bin/sh
apt-mark -qq unhold kubelet
echo 'no room'
exit 100
END
chmod 755 /usr/sbin/apt-get`);
  expect(await here(stepScript({ ...context, step: 'kubelet' }, kubeletBody({})))).toContain(
    'no room',
  );
  expect(await here('kubelet; apt-mark showhold; rm /usr/sbin/apt-get')).toBe(
    `Kubernetes ${OLD}\nkubelet\n`,
  );
}

function ofApt(
  here: (script: string) => Promise<string>,
  messages: (version: string) => Promise<string[]>,
): void {
  test.each(['containerd.io=2.3.2-1~debian.12', 'containerd=2.3.2~ds1-1'])(
    'containerd as the package %s is upgraded and stays held; the binaries of the manifest are for other hosts',
    async (old) => {
      const [name = ''] = old.split('=');
      const path = { path: '/none', sha256: '0'.repeat(64) };
      const containerd = {
        version: 'v2.3.3',
        binaries: { containerd: path, 'containerd-shim-runc-v2': path },
      };
      await here(`apt-get -qqy install ${old} >/dev/null && apt-mark -qq hold ${name}`);
      // The package `containerd` is staged together with the other packages. The other package is staged by the step
      // that installs it.
      if (name === 'containerd')
        await here(
          stepScript(
            { rollout: name, version: NEW, step: 'stage' },
            stageBody({ ...manifest, containerd }),
          ),
        );
      await here(
        stepScript({ rollout: name, version: NEW, step: 'containerd' }, containerdBody(containerd)),
      );
      const found = await here(
        `containerd -v; dpkg-query -W -f '\${Version}' ${name}; apt-mark showhold`,
      );
      expect(found).toMatch(/ 2\.3\.3\S* 1\n2\.3\.3[-~]\S+?\d(containerd\S*)\n/);
      expect(found).toContain(`${name}\n`);
      expect(await here(putBackScript(name, containerd))).toMatch(
        / 2\.3\.2\S* 1 \(package containerd\S* stays at 2\.3\.3\S*, with its other files\)\n/,
      );
      await here(`apt-get -qqy --allow-change-held-packages remove ${name}`);
    },
  );

  test('a plan refuses a binary of another package', async () => {
    const lists = '/var/lib/dpkg/info/kubeadm.list';
    await here(
      `cat /var/lib/dpkg/info/kubelet.list >>${lists}; sed -i '/kubelet/d' /var/lib/dpkg/info/kubelet.list`,
    );
    expect(await messages(NEW)).toContain(
      'hard kubelet belongs to package kubeadm: install package kubelet, or a file of its own, first',
    );
  });
}

function ofRpm(
  here: (script: string) => Promise<string>,
  messages: (version: string) => Promise<string[]>,
): void {
  test('a package that lacks what it needs stops the run before any host is touched', async () => {
    const said = await here(
      stepScript({ rollout: 'r5', version: LACKING, step: 'stage' }, stageBody(manifest)),
    );
    expect(said).toMatch(
      /conntrack-tools.* needed by kubeadm-1\.36\.4[^]* cannot fetch kubeadm 1\.36\.4\n/,
    );
  });

  test('a plan refuses packages that neither dnf nor zypper can replace', async () => {
    await here('rm -f /usr/bin/dnf /usr/bin/zypper');
    const cure = 'but neither dnf nor zypper is there to replace it: install a file of its own';
    expect(await messages(NEW)).toContain(`hard kubelet belongs to an RPM package, ${cure}`);
  });
}
