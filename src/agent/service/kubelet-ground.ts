/** Says what the kubelet of a new version would refuse about this host, before the node is drained. */
import { readdirSync, readFileSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentPresence } from '../../signal/agent-presence.ts';
import type { SignalCommand } from '../../signal/annotations.ts';
import { cgroupV1Refusal } from '../../versions/k0s-rules.ts';
import { whyForeign as whyForeignProcess } from './trusted-process.ts';

/** Where the files of the host lie; a test has folders of its own. */
export interface Ground {
  readonly dataDirectory: string;
  readonly proc?: string;
  /** Why a process cannot be the kubelet of this host; undefined when it can. */
  readonly whyForeign?: (pid: number) => string | undefined;
  readonly isOnCgroupV1?: () => boolean;
}

/** Of tmpfs, on which the controllers of cgroup v1 are mounted. */
const TMPFS = 0x01021994;

/** Only for k0s: on hosts of kubeadm a script asks the same. Undefined where k0s runs no kubelet, as on most controllers. */
export function groundVeto(command: SignalCommand, ground: Ground): string | undefined {
  if (command.kind !== 'k0supdate') return undefined;
  const refusal = cgroupV1Refusal(command.version);
  return refusal !== undefined && cgroupV1Of(ground) === 'refused' ? refusal : undefined;
}

/** What the agent announces, so that the leader knows before it starts a plan. Undefined on cgroup v2, and where k0s runs no kubelet. */
export function cgroupV1Of(ground: Ground): AgentPresence['cgroupV1'] {
  const { isOnCgroupV1 = hasCgroupV1 } = ground;
  if (!isOnCgroupV1()) return undefined;
  const words = kubeletWords(ground);
  if (words === undefined) return undefined;
  return allowsCgroupV1(words) ? 'allowed' : 'refused';
}

function hasCgroupV1(): boolean {
  try {
    return statfsSync('/sys/fs/cgroup').type === TMPFS;
  } catch {
    // No kubelet runs where this folder is missing.
    return false;
  }
}

/** The command line of the kubelet that k0s has started. That of a foreign process is not read: it may take gigabytes, or never end. */
function kubeletWords({
  dataDirectory,
  proc = '/proc',
  whyForeign = whyForeignProcess,
}: Ground): string[] | undefined {
  const binary = join(dataDirectory, 'bin/kubelet');
  for (const process of readdirSync(proc)) {
    if (!/^\d+$/.test(process) || whyForeign(Number(process)) !== undefined) continue;
    const words = textOf(join(proc, process, 'cmdline')).split('\0');
    if (words[0] === binary) return words;
  }
  return undefined;
}

function allowsCgroupV1(words: readonly string[]): boolean {
  if (words.includes('--fail-cgroupv1=false')) return true;
  const [config] = words.flatMap((word) => /^--config=(.+)$/.exec(word)?.[1] ?? []);
  const text = config === undefined ? '' : textOf(config);
  // k0s writes this file as YAML or JSON.
  return /^[ \t]*"?failCgroupV1"?: *false\b|[{,]\s*"failCgroupV1": *false\b/m.test(text);
}

/** Empty if it cannot be read, as when the process has ended. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
