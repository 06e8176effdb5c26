/** A stand-in kubeadm host: a directory with the binaries, manifests and credentials of a real host. */
import { chmod, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Validity } from '../../tools/controlplane/certs.ts';
import { makeCertificates } from './stand-in-certificates.ts';

export interface StandInHost {
  readonly name: string;
  readonly role: 'controlPlane' | 'worker';
  readonly root: string;
}

export interface StandInOptions extends StandInHost {
  readonly version: string;
  /** The versions whose binaries are available below /opt/kubernetes on the host. */
  readonly offers: readonly string[];
  /** The validity of kubeadm's certificates on control-plane hosts. Without it these hosts have no certificates. */
  readonly certificates?: Validity | undefined;
  /** The path of the kubeconfig of the administrator, which every control-plane host has. */
  readonly kubeconfig: string;
  /** The socket at which `answerHosts` listens. Without it, the programs only print their versions. */
  readonly socket?: string;
}

export const COMPONENTS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];
/** The version of containerd that is available below /opt/containerd on the host. */
export const CONTAINERD = 'v2.1.5';
/** The tag of the image of etcd. */
export const ETCD = '3.6.8-0';

const ASK = join(import.meta.dirname, 'ask.sh');

export async function createStandInHost({
  name,
  role,
  root,
  version,
  offers,
  kubeconfig,
  certificates,
  socket = '',
}: StandInOptions): Promise<StandInHost> {
  for (const folder of [
    'run',
    'usr/bin',
    'var/log',
    'var/lib/kubelet',
    'etc/kubernetes/tmp',
    'hooks/die-without',
  ])
    await mkdir(join(root, folder), { recursive: true });
  await copyFile(kubeconfig, join(root, 'etc/kubernetes/admin.conf'));
  await writeFile(join(root, 'etc/hostname'), name);
  await writeFile(join(root, 'var/lib/kubelet/config.yaml'), 'kind: KubeletConfiguration\n');
  for (const each of [version, ...offers]) {
    await writeScript(join(root, 'opt/kubernetes', each, 'kubeadm'), kubeadmOf(each, socket));
    await writeScript(join(root, 'opt/kubernetes', each, 'kubelet'), kubeletOf(each, socket));
  }
  for (const binary of ['kubeadm', 'kubelet'])
    await copyFile(join(root, 'opt/kubernetes', version, binary), join(root, 'usr/bin', binary));
  await writeScript(join(root, 'usr/bin/systemctl'), systemctlFor(name, socket));
  // The host has its own containerd, so that scripts never find the containerd of this machine.
  for (const [folder, own] of Object.entries({
    'usr/bin': 'v2.1.4',
    'opt/containerd': CONTAINERD,
  })) {
    await writeScript(
      join(root, folder, 'containerd'),
      `echo "containerd example.com/containerd/v2 ${own} 0"\n`,
    );
    await writeScript(join(root, folder, 'containerd-shim-runc-v2'), `echo "  Version:  ${own}"\n`);
  }
  // On the host, no package owns the binaries, and no other kubeadm runs. The scripts say so at once. A check of this
  // machine would take longer, and somebody may run a kubeadm on it.
  for (const name of ['dpkg-query', 'pgrep'])
    await writeScript(join(root, 'usr/bin', name), 'exit 1\n');
  // The host belongs to the current user, so commands run without root rights.
  await writeScript(join(root, 'usr/bin/sudo'), '[ "$1" = -n ] && shift\nexec "$@"\n');
  if (role === 'controlPlane') await writeManifests(root, version);
  if (role === 'controlPlane' && certificates) makeCertificates(root, certificates);
  return { name, role, root };
}

async function writeManifests(root: string, version: string): Promise<void> {
  await mkdir(join(root, 'etc/kubernetes'), { recursive: true });
  await writeFile(join(root, 'etc/kubernetes/controller-manager.conf'), '');
  for (const component of COMPONENTS) {
    const tag = component === 'etcd' ? ETCD : version;
    const spec = `spec:\n  containers:\n  - name: ${component}\n    image: registry.local:5000/${component}:${tag}\n`;
    await mkdir(join(root, 'etc/kubernetes/manifests'), { recursive: true });
    await writeFile(
      join(root, `etc/kubernetes/manifests/${component}.yaml`),
      `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${component}\n${spec}`,
    );
  }
}

const asking = (socket: string, question: string): string =>
  `SOCKET=${socket}\nset -- ${question}\n. ${ASK}\n`;

/**
 * The shell prints the version, because it is requested often. The output of `upgrade diff` shows a new manifest
 * without flags.
 */
function kubeadmOf(version: string, socket: string): string {
  const file = '/etc/kubernetes/manifests/kube-apiserver.yaml';
  const lost = `sed -n 's/^ *- --/-&/p' "$REFIT_ROOT${file}"`;
  const diff = `[ "$1 $2" != "upgrade diff" ] || { echo "--- ${file}"; ${lost}; exit 0; }`;
  return `if [ "$1" = version ]; then echo ${version}; exit 0; fi\n${diff}\n${asking(socket, `kubeadm ${version} "$@"`)}`;
}

function kubeletOf(version: string, socket: string): string {
  const tell = `if [ "$1" = --version ]; then echo "Kubernetes ${version}"; exit 0; fi\n`;
  return `${tell}${asking(socket, `kubelet ${version} "$@"`)}`;
}

function systemctlFor(node: string, socket: string): string {
  const containerd = asking(socket, `containerd "$(containerd -v | cut -d ' ' -f 3)" ${node}`);
  return `echo "$*" >>"$REFIT_ROOT/var/log/systemctl"
case $* in
'restart kubelet') exec "$REFIT_ROOT/usr/bin/kubelet" ${node} ;;
'restart containerd')
${containerd};;
esac
`;
}

async function writeScript(path: string, body: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `#!/bin/sh\n${body}`);
  await chmod(path, 0o755);
}

/** Returns every line that a program has written to its log on the host. */
export async function logOf(
  { root }: StandInHost,
  program: 'kubeadm' | 'kubeadm-preflight' | 'kubelet' | 'static-pods' | 'systemctl',
): Promise<string[]> {
  const text = await readFile(join(root, 'var/log', program), 'utf8').catch(() => '');
  return text.split('\n').filter((line) => line !== '');
}
