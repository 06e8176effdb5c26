/** Runs the pod of the agent's DaemonSet with runc, as a kubelet would: its command, host paths, and the host's processes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parse } from 'yaml';
import { findRunc } from '../../testenv/container.ts';

const MANIFEST = join(import.meta.dirname, '../../../deploy/chart/manifests/agent/daemonset.yaml');

/** For runc alone, which makes a group: each jail has another part of this. */
const WITH_CGROUPS =
  'findmnt -t cgroup2 /sys/fs/cgroup >/dev/null || { mount -t sysfs none /sys; mount -t cgroup2 none /sys/fs/cgroup; }; exec "$@"';

interface PodSpec {
  readonly hostPID: boolean;
  readonly hostNetwork: boolean;
  readonly containers: readonly [
    {
      readonly command: readonly string[];
      readonly args: readonly string[];
      readonly securityContext: { readonly privileged: boolean };
      readonly volumeMounts: readonly {
        readonly name: string;
        readonly mountPath: string;
        readonly readOnly?: boolean;
      }[];
    },
  ];
  readonly volumes: readonly {
    readonly name: string;
    readonly hostPath?: { readonly path: string };
  }[];
}

/** What a distribution's image for the launcher has: here this machine's /usr. */
function makeLauncher(root: string): void {
  mkdirSync(root);
  for (const name of ['usr', 'proc', 'dev', 'host', 'refit']) mkdirSync(join(root, name));
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) symlinkSync(`usr/${name}`, join(root, name));
}

function specOf(
  { hostPID, hostNetwork, containers: [container], volumes }: PodSpec,
  root: string,
  image: string,
) {
  const { command, args, securityContext, volumeMounts } = container;
  // All that this process may do itself.
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
    root: { path: root, readonly: true },
    process: {
      user: { uid: 0, gid: 0 },
      args: [...command, ...args],
      env: ['PATH=/usr/sbin:/usr/bin'],
      cwd: '/',
      capabilities: securityContext.privileged
        ? { bounding: all, effective: all, permitted: all }
        : {},
    },
    mounts: [
      { destination: '/usr', type: 'bind', source: '/usr', options: ['rbind', 'ro'] },
      { destination: '/proc', type: 'bind', source: '/proc', options: ['rbind'] },
      { destination: '/dev', type: 'bind', source: '/dev', options: ['rbind'] },
      ...volumeMounts.map(({ name, mountPath, readOnly }) => ({
        destination: mountPath,
        type: 'bind',
        source: volumes.find((volume) => volume.name === name)?.hostPath?.path ?? image,
        options: ['rbind', readOnly === true ? 'ro' : 'rw'],
      })),
    ],
    linux: { namespaces: own.map((type) => ({ type })) },
  };
}

/** By number, of capability.h. */
const CAPABILITIES = (
  'CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE ' +
  'NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN ' +
  'SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE ' +
  'MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE'
).split(' ');

/** A pod that runs; `binary` is the program of Refit's image. */
export class AgentPod {
  readonly output: string[] = [];
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  /** `directory` does not exist yet. */
  constructor(directory: string, binary: string) {
    const root = join(directory, 'rootfs');
    const image = join(directory, 'image');
    mkdirSync(directory);
    makeLauncher(root);
    mkdirSync(join(image, 'usr/bin'), { recursive: true });
    copyFileSync(binary, join(image, 'usr/bin/refit'));
    const { spec } = parse(readFileSync(MANIFEST, 'utf8')) as {
      spec: { template: { spec: PodSpec } };
    };
    writeFileSync(
      join(directory, 'config.json'),
      JSON.stringify(specOf(spec.template.spec, root, image)),
    );
    const runc = [
      findRunc(),
      '--root',
      join(directory, 'runc'),
      'run',
      '--bundle',
      directory,
      'refit-agent',
    ];
    const inOwnMounts = ['--mount', '--propagation', 'private', 'sh', '-ec', WITH_CGROUPS, 'sh'];
    this.#child = spawn('unshare', [...inOwnMounts, ...runc], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      if (stream) createInterface({ input: stream }).on('line', (line) => this.output.push(line));
    this.#ended = once(this.#child, 'close');
  }

  /** As a kubelet ends it. */
  async stop(): Promise<void> {
    this.#child.kill('SIGTERM');
    await this.#ended;
  }
}
