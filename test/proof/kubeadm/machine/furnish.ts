/** Installs on a new machine what the kubeadm documentation requires of a host before `kubeadm init`. */
import { chmod, copyFile, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CONTAINERD, RUNTIME } from '../parts/programs.ts';
import type { Machine } from './machine.ts';

const HERE = import.meta.dirname;

export interface Furniture {
  readonly parts: string;
  /** The version that is installed first. The versions of `offers` are below /opt/kubernetes. */
  readonly version: string;
  readonly offers: readonly string[];
  /** The name of the image of the pause container, which holds the namespaces of a pod. */
  readonly sandbox: string;
  /** Lines of /etc/hosts. */
  readonly hosts: string;
  /** Public key of the operator, and the machine's private host key. */
  readonly authorized: string;
  readonly hostKey: string;
  /** The folder that contains the binaries of Kubernetes. */
  readonly folder: string;
}

export async function furnish(
  { root, usr, address }: Machine,
  furniture: Furniture,
): Promise<void> {
  const { parts, version, offers, folder } = furniture;
  const at = (...path: string[]): string => join(root, ...path);
  const installed = folder.startsWith('/usr/')
    ? join(usr, folder.slice('/usr/'.length))
    : at(folder);
  const folders = [
    [version, installed],
    ...offers.map((each) => [each, at('opt/kubernetes', each)]),
  ] as const;
  for (const [from, to] of folders) {
    await mkdir(to, { recursive: true });
    for (const tool of ['kubeadm', 'kubelet', 'kubectl'])
      await copyFile(join(parts, from, tool), join(to, tool));
  }
  for (const tool of RUNTIME)
    await copyFile(join(parts, 'containerd', CONTAINERD.from, tool), at('local/bin', tool));
  for (const tool of await readdir(join(parts, 'bin')))
    await symlink(`/opt/parts/bin/${tool}`, at('local/bin', tool));
  await copyFile(join(HERE, 'systemctl'), at('local/bin/systemctl'));
  await chmod(at('local/bin/systemctl'), 0o755);
  await packaged(at('local/sbin'));
  const toml = await readFile(join(HERE, 'containerd.toml'), 'utf8');
  const files = {
    'etc/containerd/config.toml': toml.replace('SANDBOX', furniture.sandbox),
    'etc/cni/net.d/10-bridge.conflist': bridge(Number(address.split('.')[3])),
    'etc/hosts': `127.0.0.1 localhost\n${furniture.hosts}`,
    'etc/resolv.conf': 'nameserver 127.0.0.1\n',
    'etc/ssh/sshd_config': SSHD,
    'root/.ssh/authorized_keys': furniture.authorized,
    'etc/services.d/containerd': 'exec containerd\n',
    'etc/services.d/kubelet': kubelet(folder),
    'etc/services.d/sshd': 'exec /usr/sbin/sshd -D -e\n',
  };
  for (const [path, content] of Object.entries(files)) await writeFile(at(path), content);
  await copyFile(furniture.hostKey, at('etc/ssh/ssh_host_ed25519_key'));
  await chmod(at('etc/ssh/ssh_host_ed25519_key'), 0o600);
  await chmod(at('root/.ssh/authorized_keys'), 0o600);
}

/**
 * Installs wrappers for the programs of Debian packages that are only unpacked. Each wrapper sets the path of the
 * libraries.
 */
async function packaged(directory: string): Promise<void> {
  const debian = '/opt/parts/debian';
  const libraries = `$(echo ${debian}/usr/lib/*-linux-gnu*)`;
  const wrapper = (program: string, word: string): string =>
    `#!/bin/sh\nLD_LIBRARY_PATH=${libraries} XTABLES_LIBDIR=${libraries}/xtables exec ${debian}/usr/sbin/${program} ${word} "$@"\n`;
  const tables = ['', '-save', '-restore'].flatMap((end) => [`iptables${end}`, `ip6tables${end}`]);
  const programs = [
    ...tables.map((name) => [name, wrapper('xtables-nft-multi', name)] as const),
    ['conntrack', wrapper('conntrack', '')] as const,
    ['runc', wrapper('runc', '')] as const,
  ];
  for (const [name, text] of programs) {
    await writeFile(join(directory, name), text);
    await chmod(join(directory, name), 0o755);
  }
}

const SSHD = `HostKey /etc/ssh/ssh_host_ed25519_key
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
MaxSessions 50
PidFile none
`;

/** The unit of the kubelet from kubeadm's packages, written as a shell script. */
const kubelet = (
  folder: string,
): string => `[ ! -e /var/lib/kubelet/kubeadm-flags.env ] || . /var/lib/kubelet/kubeadm-flags.env
exec ${folder}/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf \\
  --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS
`;

const bridge = (number: number): string =>
  JSON.stringify({
    cniVersion: '1.0.0',
    name: 'machines',
    plugins: [
      {
        type: 'bridge',
        bridge: 'cni0',
        isGateway: true,
        ipMasq: false,
        ipam: {
          type: 'host-local',
          ranges: [[{ subnet: `10.244.${number}.0/24` }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
    ],
  });
