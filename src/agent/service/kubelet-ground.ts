/**
 * Finds out, before the node is drained, whether the kubelet of a new version would refuse to start on this host, and
 * why.
 */
import { existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs';
import { uptime } from 'node:os';
import { join } from 'node:path';
import type { CgroupV1 } from '../../signal/agent-presence.ts';
import type { SignalCommand } from '../../signal/annotations.ts';
import { cgroupV1Refusal } from '../../versions/k0s-rules.ts';
import { ageAt, findProcess } from './processes.ts';
import { whyForeign as whyForeignProcess } from './trusted-process.ts';

/** The paths of the host's files, and the known facts about its processes. Tests use directories of their own. */
export interface Ground {
  readonly dataDirectory: string;
  /** True if the owner of the host says that a kubelet may start on cgroup v1, whatever its configuration says. */
  readonly allowed?: boolean | undefined;
  /** The version of k0s that runs the kubelet. Undefined if it is not known. */
  readonly running?: string | undefined;
  readonly proc?: string;
  /** Returns why a process cannot be the kubelet of this host; undefined if it can. */
  readonly whyForeign?: (pid: number) => string | undefined;
  readonly isOnCgroupV1?: () => boolean;
  /** Returns the milliseconds since the process started. */
  readonly ageOf?: (pid: number) => number | undefined;
}

interface Kubelet {
  readonly pid: number;
  readonly words: readonly string[];
}

/** The file system type of a tmpfs, as statfs returns it. The controllers of cgroup v1 are mounted on a tmpfs. */
const TMPFS = 0x01021994;

/** Milliseconds after which a running kubelet has proven that it accepts its host. A kubelet that refuses its host ends within a second. */
const PROVEN_MS = 30_000;

/**
 * Returns why the kubelet of the new version would not start; undefined if it would start. It checks only hosts of k0s,
 * because a script checks the hosts of kubeadm. It also returns undefined if k0s runs no kubelet, as on most
 * controllers.
 */
export function groundVeto(command: SignalCommand, ground: Ground): string | undefined {
  if (command.kind !== 'k0supdate') return undefined;
  const refusal = cgroupV1Refusal(command.version);
  return refusal !== undefined && cgroupV1Of(ground) === 'refused' ? refusal : undefined;
}

/**
 * Returns what the agent reports about cgroup v1, so that the leader knows it before a plan starts. Returns undefined
 * in three cases: the host uses cgroup v2, k0s runs no kubelet, or the kubelet's configuration cannot be read.
 */
export function cgroupV1Of(ground: Ground): CgroupV1 | undefined {
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
    // A missing directory means that no kubelet runs on this host.
    return false;
  }
}

/**
 * Returns the kubelet that k0s started. The command line of an untrusted process is not read, because that process may
 * have gigabytes of arguments or change them without end.
 */
function findKubelet({
  dataDirectory,
  proc = '/proc',
  whyForeign = whyForeignProcess,
}: Ground): Kubelet | undefined {
  const binary = join(dataDirectory, 'bin/kubelet');
  for (const process of readdirSync(proc)) {
    // Guard kubelet-process. Nobody else decides how the kubelet is configured.
    if (!/^\d+$/.test(process) || whyForeign(Number(process)) !== undefined) continue;
    const words = (textOf(join(proc, process, 'cmdline')) ?? '').split('\0');
    if (words[0] === binary) return { pid: Number(process), words };
  }
  return undefined;
}

/**
 * Returns true if the kubelet is running although its version refuses this host by default. In that case its
 * configuration must allow cgroup v1.
 */
function provesIt({ pid }: Kubelet, { running, ageOf = ageOfProcess }: Ground): boolean {
  if (running === undefined || cgroupV1Refusal(running) === undefined) return false;
  return (ageOf(pid) ?? 0) >= PROVEN_MS;
}

function ageOfProcess(pid: number): number | undefined {
  const process = findProcess(pid);
  return process && ageAt(process, uptime());
}

/**
 * Returns the value that the kubelet uses. The flag has the highest precedence. Without it the last value counts, from
 * `--config` and then from the files of `--config-dir` in the order of their names.
 */
function configured(words: readonly string[]): CgroupV1 | undefined {
  const flag = lastOf(words, 'fail-cgroupv1');
  if (flag !== undefined) return isFalse(flag) ? 'allowed' : 'refused';
  const config = lastOf(words, 'config');
  const folder = lastOf(words, 'config-dir');
  const files = [...(config === undefined ? [] : [config]), ...dropInsOf(folder)];
  const texts = files.map(textOf);
  // If a file cannot be read, its value is unknown.
  if (texts.includes(undefined)) return undefined;
  const said = texts.flatMap((text) => saidIn(text ?? '') ?? []);
  return said.at(-1) === 'false' ? 'allowed' : 'refused';
}

/** Returns the value of the last `--name=value` or `--name value`. */
function lastOf(words: readonly string[], name: string): string | undefined {
  return words
    .flatMap((word, index) => {
      if (word === `--${name}`) return words[index + 1] ?? [];
      return word.startsWith(`--${name}=`) ? word.slice(name.length + 3) : [];
    })
    .at(-1);
}

/** Returns true for the texts that Go accepts as false. */
function isFalse(text: string): boolean {
  return ['0', 'f', 'F', 'false', 'FALSE', 'False'].includes(text);
}

/**
 * Returns the files that the kubelet reads: all files whose names end with `.conf`, including those in subdirectories,
 * sorted by name.
 */
function dropInsOf(folder: string | undefined): string[] {
  if (folder === undefined || !existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.conf'))
    .toSorted()
    .map((name) => join(folder, name));
}

/** Returns the value in a configuration file. k0s writes YAML or JSON; in a drop-in the value may be quoted. */
function saidIn(text: string): string | undefined {
  return /(?:^|[{,])[ \t]*["']?failCgroupV1["']?: *(true|false)\b/m.exec(text)?.[1];
}

/** Returns undefined if the file cannot be read, for example because the process has ended. */
function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
