/**
 * A cluster whose kubeadm, kubelet and kubectl are Debian packages. Each machine has a real apt-get and dpkg, and a
 * repository that consists of files.
 */
import { createHash } from 'node:crypto';
import { chmod, copyFile, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { must } from '../../../../tools/release/commands.ts';
import { differing } from '../../checks.ts';
import type { Machine } from '../../machines/machine.ts';
import { type Cluster, type ClusterOptions, USUAL, type Way } from '../cluster.ts';

export const NAMES = ['kubeadm', 'kubectl', 'kubelet'] as const;
const HELD = 'kubelet';
/** The folder of the repository on the machines. The machines have access to it only because it is in `parts`. */
const REPOSITORY = '/opt/parts/repository';
const SOURCES = '/etc/apt/sources.list';

/** A way in which the machines begin with packages of the first version, and the kubelet package is on hold. */
export const packagedWay: Way = {
  ...USUAL,
  async make(cluster, options) {
    for (const machine of cluster.machines) await install(machine, options);
    await USUAL.make(cluster, options);
  },
};

/** Returns the package version of a version, in the form that the package repositories of Kubernetes use. */
const revisionOf = (version: string): string => `${version.slice(1)}-1.1`;

/** Makes a package of each program and version. They have no scripts, because the machines have services of their own. */
export async function makeRepository(parts: string, versions: readonly string[]): Promise<void> {
  const repository = join(parts, 'repository');
  const listed: string[] = [];
  await mkdir(repository);
  for (const version of versions)
    for (const name of NAMES) {
      const folder = join(parts, 'package');
      const program = join(folder, 'usr/bin', name);
      await mkdir(join(folder, 'DEBIAN'), { recursive: true });
      await mkdir(join(folder, 'usr/bin'), { recursive: true });
      await copyFile(join(parts, version, name), program);
      await chmod(program, 0o755);
      const control = `Package: ${name}\nVersion: ${revisionOf(version)}\nArchitecture: all\nMaintainer: none\nDescription: none\n`;
      await writeFile(join(folder, 'DEBIAN/control'), control);
      const sum = createHash('md5')
        .update(await readFile(program))
        .digest('hex');
      await writeFile(join(folder, 'DEBIAN/md5sums'), `${sum}  usr/bin/${name}\n`);
      const file = `${name}_${revisionOf(version)}_all.deb`;
      const deb = join(repository, file);
      await must('dpkg-deb', ['-Znone', '--build', '--root-owner-group', folder, deb]);
      await rm(folder, { recursive: true });
      const { size } = await stat(deb);
      const hash = createHash('sha256')
        .update(await readFile(deb))
        .digest('hex');
      listed.push(`${control}Filename: ./${file}\nSize: ${size}\nSHA256: ${hash}\n`);
    }
  await writeFile(join(repository, 'Packages'), listed.join('\n'));
}

async function install(machine: Machine, { from, log }: ClusterOptions): Promise<void> {
  const wanted = NAMES.map((name) => `${name}=${revisionOf(from)}`).join(' ');
  // Makes apt work as it does on a host. In container images, apt is configured to read all packages at each start, and
  // to call other programs after each change.
  await machine.must(`set -e
rm -f /etc/apt/apt.conf.d/docker-clean /etc/apt/apt.conf.d/20packagekit /etc/apt/apt.conf.d/50appstream
rm -rf /etc/apt/sources.list.d/*
mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates /var/lib/dpkg/triggers /var/lib/apt/lists/partial /var/cache/apt/archives/partial
touch /var/lib/dpkg/status /var/lib/dpkg/available`);
  await offer(machine);
  await machine.must(
    `DEBIAN_FRONTEND=noninteractive apt-get -qqy -o APT::Sandbox::User=root install ${wanted}
apt-mark -qq hold ${HELD}`,
  );
  log(`${machine.name} has packages of ${from}`);
}

/** Makes the machine use the repository from now on. */
export async function offer(machine: Machine): Promise<void> {
  await writeFile(join(machine.root, SOURCES), `deb [trusted=yes] file:${REPOSITORY} ./\n`);
  await machine.must('apt-get -qq -o APT::Sandbox::User=root update');
}

/** Makes the machine's repository empty, as when a mirror has removed its old packages. */
export async function withdraw(machine: Machine): Promise<void> {
  await writeFile(join(machine.root, SOURCES), '');
  await machine.must('apt-get -qq -o APT::Sandbox::User=root update');
}

/**
 * Returns what is wrong with the packages of each machine. They must be complete, unchanged and of this version, and
 * the kubelet must be on hold.
 */
export async function wrongPackages({ machines }: Cluster, version: string): Promise<string[]> {
  const expected = [
    ...NAMES.map((name) => `${name} ${revisionOf(version)} ${name === HELD ? 'hi' : 'ii'} `),
    'changed:',
  ].join('\n');
  const found = await Promise.all(
    machines.map(async (machine): Promise<[string, string]> => {
      const said = await machine.must(
        `dpkg-query -W -f '\${Package} \${Version} \${db:Status-Abbrev}\\n' ${NAMES.join(' ')}
echo changed: $(dpkg --audit) $(dpkg --verify ${NAMES.join(' ')})`,
      );
      return [machine.name, said.trim()];
    }),
  );
  return differing(Object.fromEntries(found), expected);
}
