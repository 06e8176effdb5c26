/** A host with kubeadm, what it is upgraded to, and how scripts run on it: over SSH, or by an agent on the host itself. */
import { messageOf } from '../../../util/errors.ts';
import type { ShellResult } from '../../../util/run-program.ts';

export interface Host {
  readonly name: string;
  readonly role: 'controlPlane' | 'worker';
  readonly kubeadm?: KubeadmOptions;
  /** Those of its own, which replace the ones for all hosts, each by itself. */
  readonly binaries?: Partial<Binaries>;
}

/** One for all processors, or one for each of them, such as `arm64`. */
export type Hash = string | Readonly<Record<string, string>>;

/** A file on the host, or a download with its hash. `{arch}` stands for the processor of the host, such as `amd64`. */
export type Binary =
  | { readonly path: string; readonly sha256?: Hash }
  | { readonly url: string; readonly sha256: Hash };

export interface KubeadmOptions {
  readonly ignorePreflightErrors?: readonly string[];
  readonly patches?: string;
  /** File with an UpgradeConfiguration. */
  readonly config?: string;
  readonly certificateRenewal?: boolean;
  readonly etcdUpgrade?: boolean;
}

/** kubectl is replaced where a host has it. */
export interface Binaries {
  readonly kubeadm: Binary;
  readonly kubelet: Binary;
  readonly kubectl?: Binary;
}

export interface Upgrade {
  /** With `v`. */
  readonly version: string;
  readonly binaries: Binaries;
  readonly containerd?: Containerd;
  readonly kubeadm: KubeadmOptions;
  /** In PEM: who has its key can read the snapshots of etcd. Absent: everybody who has a snapshot. */
  readonly etcdSnapshotCertificate?: string;
}

/** Without it, containerd stays as it is. */
export interface Containerd {
  /** With `v`. */
  readonly version: string;
  /** By name, also of runc. Where containerd is a package, that is replaced instead. */
  readonly binaries: Readonly<Record<string, Binary>>;
}

/** A host runs the first two at once, or its control plane part first and its kubelet later. */
export type Part = 'kubeadm' | 'kubelet' | 'certificates';

/** What it says, in one line; a Node holds no more than 256 KiB of annotations. */
export function saidBy({ stdout, stderr }: ShellResult): string {
  const lines = (stdout.trim() || stderr.trim()).slice(-1_000).split('\n');
  return lines
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join('; ');
}

/** A host that is out of reach says why, too. */
export async function attempt(running: Promise<ShellResult>): Promise<ShellResult> {
  return await running.catch((error: unknown) => ({
    code: 1,
    stdout: messageOf(error),
    stderr: '',
  }));
}

export interface Shells {
  /** Runs a POSIX script as root, on one of the hosts that this is for. @throws RefitError if the host is out of reach, or the script does not end */
  run(host: Host, script: string, patienceMs?: number): Promise<ShellResult>;
}
