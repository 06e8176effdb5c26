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
  /** Versions whose binaries lie ready below /opt/kubernetes on the host. */
  readonly offers: readonly string[];
  /** Of kubeadm's certificates on control-plane hosts; without it they have none. */
  readonly certificates?: Validity | undefined;
  /** Of the administrator, as every control-plane host has it. */
  readonly kubeconfig: string;
}

export const COMPONENTS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];
/** Lies ready below /opt/containerd on the host. */
export const CONTAINERD = 'v2.1.5';
/** Tag of its image. */
export const ETCD = '3.6.8-0';

/** Names the built file of the program, where there is one. */
export const BUILT_STAND_IN = 'REFIT_BUILT_STAND_IN';
const FILE = process.env[BUILT_STAND_IN] ?? join(import.meta.dirname, 'stand-in.ts');
/** An SSH server passes no environment on: without the cache, Node compiles the program's files at each of many starts. */
const CACHE = process.env['NODE_COMPILE_CACHE'] ?? '';
const PROGRAM = `NODE_COMPILE_CACHE="${CACHE}" "${process.execPath}" "${FILE}"`;

export async function createStandInHost({
  name,
  role,
  root,
  version,
  offers,
  kubeconfig,
  certificates,
}: StandInOptions): Promise<StandInHost> {
  for (const folder of ['run', 'usr/bin', 'var/log', 'var/lib/kubelet', 'etc/kubernetes/tmp', 'hooks/die-without'])
    await mkdir(join(root, folder), { recursive: true });
  await copyFile(kubeconfig, join(root, 'etc/kubernetes/admin.conf'));
  await writeFile(join(root, 'etc/hostname'), name);
  await writeFile(join(root, 'var/lib/kubelet/config.yaml'), 'kind: KubeletConfiguration\n');
  for (const each of [version, ...offers]) {
    await writeScript(join(root, 'opt/kubernetes', each, 'kubeadm'), kubeadmOf(each));
    await writeScript(join(root, 'opt/kubernetes', each, 'kubelet'), kubeletOf(each));
  }
  for (const binary of ['kubeadm', 'kubelet'])
    await copyFile(join(root, 'opt/kubernetes', version, binary), join(root, 'usr/bin', binary));
  await writeScript(join(root, 'usr/bin/systemctl'), systemctlFor(name));
  // What the machine itself has is none of the host's.
  for (const [folder, own] of Object.entries({ 'usr/bin': 'v2.1.4', 'opt/containerd': CONTAINERD })) {
    await writeScript(join(root, folder, 'containerd'), `echo "containerd example.com/containerd/v2 ${own} 0"\n`);
    await writeScript(join(root, folder, 'containerd-shim-runc-v2'), `echo "  Version:  ${own}"\n`);
  }
  // No package owns them, and no other kubeadm runs: to ask this machine would take longer, and others may run one on it.
  for (const name of ['dpkg-query', 'pgrep']) await writeScript(join(root, 'usr/bin', name), 'exit 1\n');
  // Root or not, the host is ours.
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

/** Versions are told by the shell: they are asked for often, and Node takes a while to start. Its new manifest has no flags. */
function kubeadmOf(version: string): string {
  const file = '/etc/kubernetes/manifests/kube-apiserver.yaml';
  const lost = `sed -n 's/^ *- --/-&/p' "$REFIT_ROOT${file}"`;
  const diff = `[ "$1 $2" != "upgrade diff" ] || { echo "--- ${file}"; ${lost}; exit 0; }`;
  return `if [ "$1" = version ]; then echo ${version}; exit 0; fi\n${diff}\n${PROGRAM} kubeadm ${version} "$@"\n`;
}

function kubeletOf(version: string): string {
  return `if [ "$1" = --version ]; then echo "Kubernetes ${version}"; exit 0; fi\n${PROGRAM} kubelet ${version} "$@"\n`;
}

function systemctlFor(node: string): string {
  const containerd = `${PROGRAM} containerd "$(containerd -v | cut -d ' ' -f 3)" ${node}`;
  return `echo "$*" >>"$REFIT_ROOT/var/log/systemctl"
case $* in
'restart kubelet') exec "$REFIT_ROOT/usr/bin/kubelet" ${node} ;;
'restart containerd') ${containerd} ;;
esac
`;
}

async function writeScript(path: string, body: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `#!/bin/sh\n${body}`);
  await chmod(path, 0o755);
}

/** Every line that a program has left in its log on the host. */
export async function logOf(
  { root }: StandInHost,
  program: 'kubeadm' | 'kubeadm-preflight' | 'kubelet' | 'static-pods' | 'systemctl',
): Promise<string[]> {
  const text = await readFile(join(root, 'var/log', program), 'utf8').catch(() => '');
  return text.split('\n').filter((line) => line !== '');
}
