/**
 * Runs the pod of the agent's DaemonSet with runc, as a kubelet would: with Refit's image, with host paths, and in the
 * PID namespace of the host.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parse } from 'yaml';
import { findRunc } from '../../testenv/container.ts';

const MANIFEST = join(import.meta.dirname, '../../../deploy/chart/manifests/agent/daemonset.yaml');

/**
 * Mounts the hierarchy of cgroups. Only runc needs the hierarchy, because runc creates a cgroup. It depends on the jail
 * which mount is missing.
 */
const WITH_CGROUPS =
  'findmnt -t cgroup2 /sys/fs/cgroup >/dev/null || { mount -t sysfs none /sys; mount -t cgroup2 none /sys/fs/cgroup; }; exec "$@"';

interface PodSpec {
  readonly hostPID: boolean;
  readonly hostNetwork: boolean;
  readonly containers: readonly [
    {
      readonly command: readonly string[];
      readonly args: readonly string[];
      readonly env: readonly { readonly name: string; readonly value: string }[];
      readonly securityContext: {
        readonly privileged: boolean;
        readonly runAsUser: number;
        readonly runAsGroup: number;
      };
      readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
    },
  ];
  readonly volumes: readonly {
    readonly name: string;
    readonly hostPath: { readonly path: string; readonly type: 'DirectoryOrCreate' };
  }[];
}

/** Refit's image, unpacked. */
export interface PodImage {
  readonly root: string;
  /** The environment variables from the configuration of the image. */
  readonly environment: readonly string[];
}

function specOf(
  { hostPID, hostNetwork, containers: [container], volumes }: PodSpec,
  image: PodImage,
) {
  const { command, args, env, securityContext, volumeMounts } = container;
  const { runAsUser: uid, runAsGroup: gid } = securityContext;
  // The container gets all capabilities that this process has itself.
  const bits = BigInt(
    `0x${/^CapEff:\s+(\w+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]}`,
  );
  const all = CAPABILITIES.filter((_name, bit) => ((bits >> BigInt(bit)) & 1n) === 1n).map(
    (name) => `CAP_${name}`,
  );
  const own = [
    'mount',
    'ipc',
    'uts',
    ...(hostPID ? [] : ['pid']),
    ...(hostNetwork ? [] : ['network']),
  ];
  return {
    ociVersion: '1.0.2',
    root: { path: image.root, readonly: true },
    process: {
      user: { uid, gid },
      args: [...command, ...args],
      env: [...image.environment, ...env.map(({ name, value }) => `${name}=${value}`)],
      cwd: '/',
      capabilities: securityContext.privileged
        ? { bounding: all, effective: all, permitted: all }
        : {},
    },
    mounts: [
      { destination: '/proc', type: 'bind', source: '/proc', options: ['rbind'] },
      { destination: '/dev', type: 'bind', source: '/dev', options: ['rbind'] },
      ...volumeMounts.map(({ name, mountPath }) => ({
        destination: mountPath,
        type: 'bind',
        source: volumes.find((volume) => volume.name === name)?.hostPath.path,
        options: ['rbind', 'rw'],
      })),
    ],
    linux: { namespaces: own.map((type) => ({ type })) },
  };
}

/** The capabilities in the order of their numbers in capability.h. */
const CAPABILITIES = (
  'CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE ' +
  'NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN ' +
  'SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE ' +
  'MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE'
).split(' ');

const ID = 'refit-agent';

/** A running pod. Only one pod runs at a time, as on a node. */
export class AgentPod {
  readonly output: string[] = [];
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  readonly #runc: readonly string[];

  /** `directory` does not exist yet. */
  constructor(directory: string, image: PodImage) {
    mkdirSync(directory);
    const { spec } = parse(readFileSync(MANIFEST, 'utf8')) as {
      spec: { template: { spec: PodSpec } };
    };
    const pod = spec.template.spec;
    // The kubelet creates the directory with this mode.
    for (const { hostPath } of pod.volumes)
      mkdirSync(hostPath.path, { recursive: true, mode: 0o755 });
    writeFileSync(join(directory, 'config.json'), JSON.stringify(specOf(pod, image)));
    this.#runc = ['--root', join(directory, 'runc')];
    const run = [findRunc(), ...this.#runc, 'run', '--bundle', directory, ID];
    const inOwnMounts = ['--mount', '--propagation', 'private', 'sh', '-ec', WITH_CGROUPS, 'sh'];
    this.#child = spawn('unshare', [...inOwnMounts, ...run], { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      if (stream) createInterface({ input: stream }).on('line', (line) => this.output.push(line));
    this.#ended = once(this.#child, 'close');
  }

  /** Ends the pod as a kubelet does: with SIGTERM, and with SIGKILL if it did not end in time. */
  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    execFileSync(findRunc(), [...this.#runc, 'kill', ID, signal]);
    await this.#ended;
  }
}
