/**
 * Defines a host with kubeadm, the versions and binaries for its upgrade, and the interface that runs scripts on it.
 * Scripts run over SSH, or by an agent on the host itself.
 */
import { messageOf } from '../../../util/errors.ts';
import type { ShellResult } from '../../../util/run-program.ts';

export interface Host {
  readonly name: string;
  readonly role: 'controlPlane' | 'worker';
  readonly kubeadm?: KubeadmOptions;
  /**
   * The binaries for this host only. Each of these binaries replaces the binary with the same name that is configured
   * for all hosts.
   */
  readonly binaries?: Partial<Binaries>;
}

/** The SHA-256 of a binary: one value for all processors, or one value for each processor, such as `arm64`. */
export type Hash = string | Readonly<Record<string, string>>;

/**
 * A file on the host, or a download with its hash. In the path or URL, `{arch}` is replaced by the processor of the
 * host, such as `amd64`.
 */
export type Binary =
  | { readonly path: string; readonly sha256?: Hash }
  | { readonly url: string; readonly sha256: Hash };

export interface KubeadmOptions {
  readonly ignorePreflightErrors?: readonly string[];
  readonly patches?: string;
  /** The path of a file with an UpgradeConfiguration. */
  readonly config?: string;
  readonly certificateRenewal?: boolean;
  readonly etcdUpgrade?: boolean;
}

/** The binaries to install. kubectl is replaced only on hosts that have it. */
export interface Binaries {
  readonly kubeadm: Binary;
  readonly kubelet: Binary;
  readonly kubectl?: Binary;
}

export interface Upgrade {
  /** The version starts with `v`. */
  readonly version: string;
  readonly binaries: Binaries;
  readonly containerd?: Containerd;
  readonly kubeadm: KubeadmOptions;
  /**
   * A certificate in PEM. Snapshots of etcd can be read only with the key of this certificate. If it is undefined,
   * snapshots are not encrypted.
   */
  readonly etcdSnapshotCertificate?: string;
}

/** The containerd to install. If it is undefined for a host, the containerd of that host does not change. */
export interface Containerd {
  /** The version starts with `v`. */
  readonly version: string;
  /** The binaries by name, including runc. If containerd was installed from a package, the package is replaced instead. */
  readonly binaries: Readonly<Record<string, Binary>>;
}

/**
 * The parts of an upgrade. A host upgrades kubeadm and kubelet together, or kubeadm first and the kubelet after all
 * other control-plane hosts.
 */
export type Part = 'kubeadm' | 'kubelet' | 'certificates';

/** Returns the end of the output in one line. The text is short, because all annotations of a Node together may have 256 KiB. */
export function saidBy({ stdout, stderr }: ShellResult): string {
  const lines = (stdout.trim() || stderr.trim()).slice(-1_000).split('\n');
  return lines
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join('; ');
}

/** Resolves with the result of a script. If the host cannot be reached, resolves with a failed result whose output is the error. */
export async function attempt(running: Promise<ShellResult>): Promise<ShellResult> {
  return await running.catch((error: unknown) => ({
    code: 1,
    stdout: messageOf(error),
    stderr: '',
  }));
}

export interface Shells {
  /** Runs a POSIX script as root on a host. @throws RefitError if the host cannot be reached, or the script does not end */
  run(host: Host, script: string, patienceMs?: number): Promise<ShellResult>;
}
