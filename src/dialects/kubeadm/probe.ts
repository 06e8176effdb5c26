/** Reads the facts of a host from its files and binaries. */
import { RefitError } from '../../util/errors.ts';
import { defined } from '../../util/json.ts';
import { type Finding, hard, type NodeFacts, warn } from '../../versions/kubeadm-rules.ts';
import type { Manifest, ManifestHost } from './manifest.ts';
import { probeScript } from './scripts.ts';
import type { Shells } from './ssh.ts';

export interface HostFacts {
  readonly host: ManifestHost;
  /** Versions of the binaries, with `v`; undefined if missing or not executable. */
  readonly kubeadm: string | undefined;
  readonly kubelet: string | undefined;
  readonly ground: Pick<NodeFacts, 'cgroup' | 'containerd' | 'kernel'>;
  /** Versions by component; empty on workers. */
  readonly staticPods: Readonly<Record<string, string | undefined>>;
  /** What the upgrade would stumble over. */
  readonly problems: readonly Finding[];
  /** A step of Refit or another kubeadm runs on it, or has just replaced the manifest of the API server. */
  readonly isBusy: boolean;
  /** On hosts of the control plane: manifests that are missing although backups of them exist. */
  readonly missing: readonly MissingManifest[];
}

export interface MissingManifest {
  /** Without `.yaml`. */
  readonly name: string;
  /** `run`: made by a run of Refit that did not end. `hand`: by a kubeadm that a person ran. `refused`: must not be restored. */
  readonly backup: 'run' | 'hand' | 'refused';
  /** The path of the backup, or why it is refused. */
  readonly detail: string;
}

/** It only reads files and asks for versions. */
const PATIENCE_MS = 60_000;

export async function probeHost(
  shells: Shells,
  manifest: Manifest,
  host: ManifestHost,
  now: number,
): Promise<HostFacts> {
  const { code, stdout, stderr } = await shells.run(host, probeScript(manifest, host, now), PATIENCE_MS);
  if (code !== 0) {
    const why = stderr.trim().split('\n').at(-1) ?? '';
    throw new RefitError('REFIT_SSH', `${host.name}: cannot read facts from the host (exit code ${code}): ${why}`);
  }
  return { host, ...parseFacts(stdout) };
}

export function parseFacts(text: string): Omit<HostFacts, 'host'> {
  const lines = text.split('\n').map((line): [string, string] => {
    const at = line.indexOf('=');
    return [line.slice(0, Math.max(0, at)), line.slice(at + 1)];
  });
  const all = (name: string): string[] => lines.flatMap(([key, value]) => (key === name && value !== '' ? value : []));
  const images = lines.flatMap(([key, value]) => (key.startsWith('image.') ? [[key.slice(6), value] as const] : []));
  return {
    kubeadm: all('kubeadm')[0],
    kubelet: all('kubelet')[0],
    ground: groundOf(all('cgroup')[0], all('containerd')[0], all('kernel')[0]),
    problems: [
      ...all('hard').map((message) => hard('host', message)),
      ...all('warn').map((message) => warn('host', message)),
    ],
    isBusy: all('busy').length > 0,
    staticPods: Object.fromEntries(images.map(([name, image]) => [name, tagOf(image)])),
    missing: all('missing').flatMap((line) => missingIn(line) ?? []),
  };
}

function missingIn(line: string): MissingManifest | undefined {
  const [, name = '', backup = '', detail = ''] = /^(\S+) (run|hand|refused) (.*)$/.exec(line) ?? [];
  return backup === 'run' || backup === 'hand' || backup === 'refused' ? { name, backup, detail } : undefined;
}

/** The tag of an image reference, which may have a registry with a port, and a digest. */
export function tagOf(image: string): string | undefined {
  const name = image.replace(/@.*$/, '').split('/').at(-1) ?? '';
  const at = name.indexOf(':');
  return at === -1 ? undefined : name.slice(at + 1);
}

/** From the file system type of /sys/fs/cgroup, the output of `containerd --version`, and `uname -r` without suffix. */
function groundOf(cgroup: string | undefined, containerd = '', kernel = ''): HostFacts['ground'] {
  const version: NodeFacts['cgroup'] = cgroup === 'cgroup2fs' ? 2 : cgroup === 'tmpfs' ? 1 : undefined;
  return defined({
    cgroup: version,
    containerd: /^\S+ \S+ v?(\d+\.\d+\.\d+)/.exec(containerd)?.[1],
    kernel: /^\d+\.\d+/.exec(kernel)?.[0],
  });
}
