/** Says what the kubelet of a new version would refuse about this host, before the node is drained. */
import { existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs';
import { uptime } from 'node:os';
import { join } from 'node:path';
import type { AgentPresence } from '../../signal/agent-presence.ts';
import type { SignalCommand } from '../../signal/annotations.ts';
import { cgroupV1Refusal } from '../../versions/k0s-rules.ts';
import { ageAt, findProcess } from './processes.ts';
import { whyForeign as whyForeignProcess } from './trusted-process.ts';

/** Where the files of the host lie; a test has folders of its own. */
export interface Ground {
  readonly dataDirectory: string;
  /** True: the owner of the host says that a kubelet may start on cgroup v1, whatever its configuration says. */
  readonly allowed?: boolean;
  /** The version of k0s that runs the kubelet; undefined if it is not known. */
  readonly running?: string | undefined;
  readonly proc?: string;
  /** Why a process cannot be the kubelet of this host; undefined when it can. */
  readonly whyForeign?: (pid: number) => string | undefined;
  readonly isOnCgroupV1?: () => boolean;
  /** Milliseconds since the process started. */
  readonly ageOf?: (pid: number) => number | undefined;
}

interface Kubelet {
  readonly pid: number;
  readonly words: readonly string[];
}

/** Of tmpfs, on which the controllers of cgroup v1 are mounted. */
const TMPFS = 0x01021994;

/** A kubelet that refuses its host ends within a second. */
const PROVEN_MS = 30_000;

/** Only for k0s: on hosts of kubeadm a script asks the same. Undefined where k0s runs no kubelet, as on most controllers. */
export function groundVeto(command: SignalCommand, ground: Ground): string | undefined {
  if (command.kind !== 'k0supdate') return undefined;
  const refusal = cgroupV1Refusal(command.version);
  return refusal !== undefined && cgroupV1Of(ground) === 'refused' ? refusal : undefined;
}

/**
 * What the agent announces, so that the leader knows before it starts a plan. Undefined on cgroup v2, where k0s runs no kubelet, and
 * where the configuration of the kubelet cannot be read.
 */
export function cgroupV1Of(ground: Ground): AgentPresence['cgroupV1'] {
  const { isOnCgroupV1 = hasCgroupV1 } = ground;
  if (!isOnCgroupV1()) return undefined;
  const kubelet = findKubelet(ground);
  if (kubelet === undefined) return undefined;
  if (ground.allowed === true || provesIt(kubelet, ground)) return 'allowed';
  return configured(kubelet.words);
}

function hasCgroupV1(): boolean {
  try {
    return statfsSync('/sys/fs/cgroup').type === TMPFS;
  } catch {
    // No kubelet runs where this folder is missing.
    return false;
  }
}

/** The kubelet that k0s has started. The command line of a foreign process is not read: it may take gigabytes, or never end. */
function findKubelet({
  dataDirectory,
  proc = '/proc',
  whyForeign = whyForeignProcess,
}: Ground): Kubelet | undefined {
  const binary = join(dataDirectory, 'bin/kubelet');
  for (const process of readdirSync(proc)) {
    if (!/^\d+$/.test(process) || whyForeign(Number(process)) !== undefined) continue;
    const words = (textOf(join(proc, process, 'cmdline')) ?? '').split('\0');
    if (words[0] === binary) return { pid: Number(process), words };
  }
  return undefined;
}

/** A kubelet that would refuse the host, and runs here all the same, was allowed to. */
function provesIt({ pid }: Kubelet, { running, ageOf = ageOfProcess }: Ground): boolean {
  if (running === undefined || cgroupV1Refusal(running) === undefined) return false;
  return (ageOf(pid) ?? 0) >= PROVEN_MS;
}

function ageOfProcess(pid: number): number | undefined {
  const process = findProcess(pid);
  return process && ageAt(process, uptime());
}

/** Of flags and files the last one counts: first `--config`, then the files of `--config-dir` by their names, then the flag. */
function configured(words: readonly string[]): AgentPresence['cgroupV1'] {
  const flag = lastOf(words, 'fail-cgroupv1');
  if (flag !== undefined) return isFalse(flag) ? 'allowed' : 'refused';
  const config = lastOf(words, 'config');
  const folder = lastOf(words, 'config-dir');
  const files = [...(config === undefined ? [] : [config]), ...dropInsOf(folder)];
  const texts = files.map(textOf);
  // Nobody knows what a file says that cannot be read.
  if (texts.includes(undefined)) return undefined;
  const said = texts.flatMap((text) => saidIn(text ?? '') ?? []);
  return said.at(-1) === 'false' ? 'allowed' : 'refused';
}

/** The value of the last `--name=value` or `--name value`. */
function lastOf(words: readonly string[], name: string): string | undefined {
  return words
    .flatMap((word, index) => {
      if (word === `--${name}`) return words[index + 1] ?? [];
      return word.startsWith(`--${name}=`) ? word.slice(name.length + 3) : [];
    })
    .at(-1);
}

/** As the flags of Go write it. */
function isFalse(text: string): boolean {
  return ['0', 'f', 'F', 'false', 'FALSE', 'False'].includes(text);
}

/** The kubelet reads the files that end with `.conf`, also those of folders, sorted by name. */
function dropInsOf(folder: string | undefined): string[] {
  if (folder === undefined || !existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.conf'))
    .toSorted()
    .map((name) => join(folder, name));
}

/** k0s writes its file as YAML or JSON; a drop-in may have quotes as well. */
function saidIn(text: string): string | undefined {
  return /(?:^|[{,])[ \t]*["']?failCgroupV1["']?: *(true|false)\b/m.exec(text)?.[1];
}

/** Undefined if it cannot be read, as when the process has ended. */
function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
