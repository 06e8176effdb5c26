/** Makes the nodes of a kubeadm cluster look like servers and agents of K3s to the script that upgrades K3s. */
import { chmod, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Machine } from '../../machines/machine.ts';
import { until } from '../../wait.ts';
import { administer, get, type Scene } from '../scene.ts';
import { OLD, programBelow } from './programs.ts';

export interface Node {
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
  };
  readonly spec: { readonly unschedulable?: boolean };
  readonly status: {
    readonly nodeInfo: { readonly kubeletVersion: string };
    readonly conditions: readonly { readonly type: string; readonly status: string }[];
  };
}

export const ROLE = 'node-role.kubernetes.io/control-plane';
/** The path of the program on the machines. */
const PROGRAM = '/usr/local/bin/k3s';
/** The units of K3s restart it after this time. */
const RESTART_SECONDS = '5';
const SECONDS = 300;

export const nodeOf = async (scene: Scene, { name }: Machine): Promise<Node> =>
  await get<Node>(scene, 'node', name);

/** Replaces the kubelet of each machine by K3s, which runs a kubelet of its own version. */
export async function installK3s(scene: Scene): Promise<void> {
  const { cluster, options, log } = scene;
  for (const machine of cluster.machines) {
    const isServer = cluster.controlPlanes.includes(machine);
    const own = join(machine.root, 'local/bin/k3s');
    await copyFile(programBelow(options.parts, OLD), own);
    await chmod(own, 0o755);
    const unit = join(machine.root, 'etc/services.d/kubelet');
    const text = await readFile(unit, 'utf8');
    const command = `exec ${PROGRAM} ${isServer ? 'server' : 'agent'}`;
    await writeFile(unit, text.replace(/^exec \S+/m, command));
    await mkdir(join(machine.root, 'etc/restart-seconds'), { recursive: true });
    await writeFile(join(machine.root, 'etc/restart-seconds/kubelet'), RESTART_SECONDS);
    await machine.must('systemctl restart kubelet');
    if (!isServer) continue;
    // Servers of K3s have this value of the label, and no taint.
    await administer(scene, 'label', 'node', machine.name, `${ROLE}=true`, '--overwrite');
    await administer(scene, 'taint', 'node', machine.name, `${ROLE}:NoSchedule-`);
  }
  for (const machine of cluster.machines) await runs(scene, machine, OLD);
  log(`the nodes run K3s ${OLD}`);
}

/** Waits until the Node is ready and its kubelet reports the version. */
async function runs(scene: Scene, machine: Machine, version: string): Promise<void> {
  await until(`${machine.name} to run ${version}`, SECONDS, async () => {
    const { status } = await nodeOf(scene, machine);
    const isReady = status.conditions.some(
      ({ type, status: is }) => type === 'Ready' && is === 'True',
    );
    return isReady && status.nodeInfo.kubeletVersion === version;
  });
}

/** Returns what the program on the machine says about its version, and the hash of the program. */
export async function installedOn(machine: Machine): Promise<{ version: string; hash: string }> {
  const [version = ''] = (await machine.must(`${PROGRAM} --version`)).split('\n');
  const [hash = ''] = (await machine.must(`sha256sum ${PROGRAM}`)).split(' ');
  return { version: version.split(' ')[2] ?? '', hash };
}
