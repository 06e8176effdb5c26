/**
 * Starts a cluster on the real API server with hosts that are reached over SSH, and runs `refit kubeadm` with its
 * documented rights.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { REFIT } from '../../../sandbox/refit.ts';
import { type SshCluster, startSshCluster } from '../../../sandbox/sshd/cluster.ts';
import type { StartServer } from '../../../sandbox/sshd/server.ts';
import { KUBEONE_LABEL } from '../../../src/dialects/kubeadm/plan/kubeone-label.ts';
import { nodes } from '../../../src/kube/resources.ts';
import type { Validity } from '../../../tools/controlplane/certs.ts';
import { run } from '../../../tools/controlplane/run.ts';
import { controlPlane, kubeconfigFor } from '../../testenv/control-plane.ts';

export const FROM = 'v1.36.2';
export const TO = 'v1.36.3';

export interface Scene extends AsyncDisposable {
  readonly cluster: SshCluster;
  /** Starts `refit kubeadm` with these arguments. The result collects its output while it runs. */
  refit(...args: readonly string[]): Run;
  /** Starts any command of `refit` as another user. */
  refitAs(kubeconfig: string, ...args: readonly string[]): Run;
}

export interface Run {
  readonly child: ChildProcess;
  stdout: string;
  stderr: string;
  /** Resolves with the exit code; null if the process was killed. */
  readonly ended: Promise<number | null>;
}

export interface SceneOptions {
  /** True if kwok simulates the pods on the Nodes. */
  readonly played?: boolean;
  /** The version of every host at the start. */
  readonly version?: string;
  readonly offers?: readonly string[];
  readonly kubeletConfiguration?: object;
  /** The number of hosts of each role. */
  readonly hosts?: number;
  /** The validity of kubeadm's certificates on control-plane hosts. */
  readonly certificates?: Validity;
}

/** Starts a cluster. By default, it has two control-plane hosts and two workers. */
export async function openScene(
  startServer: StartServer,
  {
    played = false,
    version = FROM,
    offers = [TO],
    kubeletConfiguration = {},
    hosts = 2,
    certificates,
  }: SceneOptions = {},
): Promise<Scene> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-ssh-'));
  const place = controlPlane();
  const temporary = join(directory, 't');
  await mkdir(temporary);
  const cluster = await startSshCluster({
    directory,
    controlPlane: hosts,
    workers: hosts,
    version,
    offers,
    kubeletConfiguration,
    played,
    certificates,
    url: place.url,
    adminKubeconfig: await kubeconfigFor('admin'),
    kubeconfig: await kubeconfigFor('kubeadm'),
    startServer,
  });
  return {
    cluster,
    refit: (...args) =>
      start(['kubeadm', ...args, '--api-port', String(cluster.apiPort)], temporary),
    refitAs: (kubeconfig, ...args) => start([...args, '--kubeconfig', kubeconfig], temporary),
    async [Symbol.asyncDispose]() {
      await endConnections(temporary);
      await cluster.stop();
      await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}

/** Closes the SSH connections of a run. Those of a killed run would stay open for a while. */
async function endConnections(temporary: string): Promise<void> {
  const files = await readdir(temporary, { recursive: true });
  const sockets = files.filter((file) => /\/\d+$/.test(file)).map((file) => join(temporary, file));
  await Promise.all(
    sockets.map(
      async (socket) => await run('ssh', ['-o', `ControlPath=${socket}`, '-O', 'exit', 'host']),
    ),
  );
}

function start(args: readonly string[], temporary: string): Run {
  const child = spawn(process.execPath, [REFIT, ...args], {
    env: { ...process.env, TMPDIR: temporary },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const started: Run = {
    child,
    stdout: '',
    stderr: '',
    ended: once(child, 'close').then(([code]) => code as number | null),
  };
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    started.stdout += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    started.stderr += chunk;
  });
  return started;
}

/** Returns the version of each host. If its Node and its disk have different versions, returns both. */
export async function versions({ cluster }: Scene): Promise<unknown[]> {
  const { items } = await cluster.client.list(nodes);
  const found: [string, string | undefined][] = [];
  for (const { name, root } of cluster.hosts) {
    const node = items.find(({ metadata }) => metadata.name === name);
    const disk = await readFile(join(root, 'usr/bin/kubelet'), 'utf8');
    const all = [node?.status?.nodeInfo?.kubeletVersion, /Kubernetes (v[\d.]+)/.exec(disk)?.[1]];
    found.push([name, all.every((version) => version === all[0]) ? all[0] : all.join(' and ')]);
  }
  return found;
}

/** Returns the digest of the plan, as `refit kubeadm plan` shows it. */
export async function digestOf(scene: Scene, manifest: string): Promise<string> {
  const planned = scene.refit('plan', '-m', manifest);
  await planned.ended;
  return /^Digest of this plan: (sha256:\S+)$/m.exec(planned.stdout)?.[1] ?? '';
}

export async function kill(run: Run): Promise<void> {
  run.child.kill('SIGKILL');
  await run.ended;
}

/** Makes a host look as if it used cgroup v1. With cgroup v1, the file system of /sys/fs/cgroup is a tmpfs. */
export async function useCgroupV1(root: string): Promise<void> {
  await mkdir(join(root, 'sys/fs'), { recursive: true });
  await symlink('/dev/shm', join(root, 'sys/fs/cgroup'));
}

/** Returns the names of the Nodes with KubeOne's label for an upgrade. */
export async function labelledNodes({ cluster }: Scene): Promise<string[]> {
  const { items } = await cluster.client.list(nodes, { labelSelector: KUBEONE_LABEL });
  return items.map(({ metadata }) => metadata.name);
}
