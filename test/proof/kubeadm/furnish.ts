/** Installs on a new machine what the kubeadm documentation requires of a host before `kubeadm init`. */
import { chmod, copyFile, mkdir, readdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { CONTAINERD, RUNTIME } from '../machines/containerd.ts';
import { containerdConfiguration, furnishBase } from '../machines/furnish.ts';
import type { Machine } from '../machines/machine.ts';

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

export async function furnish(machine: Machine, furniture: Furniture): Promise<void> {
  const { root, usr } = machine;
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
  await furnishBase(machine, {
    hosts: furniture.hosts,
    files: {
      'etc/containerd/config.toml': await containerdConfiguration(furniture.sandbox),
      'etc/ssh/sshd_config': SSHD,
      'root/.ssh/authorized_keys': furniture.authorized,
      'etc/services.d/containerd': 'exec containerd\n',
      'etc/services.d/kubelet': kubelet(folder),
      'etc/services.d/sshd': 'exec /usr/sbin/sshd -D -e\n',
    },
  });
  await copyFile(furniture.hostKey, at('etc/ssh/ssh_host_ed25519_key'));
  await chmod(at('etc/ssh/ssh_host_ed25519_key'), 0o600);
  await chmod(at('root/.ssh/authorized_keys'), 0o600);
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
