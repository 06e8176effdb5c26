/**
 * The recorded behaviour of a real kubeadm: each command and its host, its exit code, its output, and its changes on
 * the disk.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Change, changesBetween, filesBelow, withoutStamps } from './changes.ts';

const FILE = join(import.meta.dirname, '../../fixtures/kubeadm/recorded.json');

export interface Recorded {
  /** The command. `TO` replaces the target version of the upgrade. */
  readonly command: string;
  readonly host: 'cp1' | 'cp2' | 'w1';
  readonly exitCode: number;
  /** Seconds. */
  readonly took: number;
  readonly output: readonly string[];
  readonly changes: readonly Change[];
}

/** A cluster of two control-plane nodes and a worker that still has the version before the upgrade. */
export interface KubeadmHosts {
  readonly from: string;
  readonly to: string;
  /** Returns the folder that serves as `/` of the host. */
  root(host: Recorded['host']): string;
  /** Returns the path of this version of kubeadm, as `sh` below finds it. */
  kubeadm(host: Recorded['host'], version: string): string;
  /** Runs a script on the host. Resolves with its output. */
  sh(host: Recorded['host'], script: string): Promise<string>;
}

/**
 * Matches the lines in which kubeadm reports its work. It matches neither the lines about the machine nor warnings with
 * a time.
 */
const SAID = /^(?:\[[a-z]|\t|error|Please|Can be|v\d)/;
const IGNORED = '--ignore-preflight-errors=SystemVerification';
/**
 * The recorded commands, and the version of kubeadm for each. The hosts have cgroups of version 1, which kubeadm
 * refuses.
 */
const COMMANDS: readonly [host: Recorded['host'], kubeadm: 'from' | 'to', args: string][] = [
  ['cp1', 'to', 'version -o short'],
  ['cp1', 'to', `upgrade apply TO ${IGNORED}`],
  ['cp1', 'to', 'upgrade apply TO --yes'],
  ['cp1', 'to', `upgrade apply v1.38.0 --yes ${IGNORED}`],
  ['cp1', 'from', `upgrade apply TO --yes ${IGNORED}`],
  ['cp1', 'to', `upgrade apply TO --yes --ignore-preflight-errors=all,SystemVerification`],
  ['cp1', 'to', `upgrade apply TO --yes --certificate-renewal=maybe ${IGNORED}`],
  ['cp1', 'to', `upgrade apply TO --yes --patches=/nowhere ${IGNORED}`],
  ['cp1', 'to', 'upgrade apply TO --yes --config=/nowhere'],
  ['cp1', 'to', `upgrade apply phase preflight TO --yes ${IGNORED}`],
  ['w1', 'to', `upgrade apply TO --yes ${IGNORED}`],
  ['w1', 'to', 'upgrade node --nonsense'],
  ['w1', 'to', `upgrade node phase preflight ${IGNORED}`],
  ['cp1', 'to', `upgrade apply TO --yes ${IGNORED}`],
  ['cp2', 'to', `upgrade node ${IGNORED}`],
  ['w1', 'to', `upgrade node ${IGNORED}`],
  ['cp1', 'to', `upgrade apply TO --yes ${IGNORED}`],
];

export async function record(hosts: KubeadmHosts): Promise<Recorded[]> {
  const recorded: Recorded[] = [];
  for (const [host, kubeadm, args] of COMMANDS) {
    const look = async () =>
      await filesBelow(hosts.root(host), '/etc/kubernetes', '/var/lib/kubelet/config.yaml');
    const before = await look();
    const started = performance.now();
    const command = `"${hosts.kubeadm(host, hosts[kubeadm])}" ${args.replace('TO', hosts.to)}`;
    const printed = await hosts.sh(host, `${command} </dev/null 2>&1; code=$?; echo; echo $code`);
    const lines = printed.trimEnd().split('\n');
    recorded.push({
      command: `${kubeadm === 'to' ? 'kubeadm' : 'the earlier kubeadm'} ${args}`,
      host,
      exitCode: Number(lines.at(-1)),
      took: Math.round((performance.now() - started) / 1000),
      output: lines
        .slice(0, -1)
        .filter((line) => SAID.test(line))
        .map(withoutStamps),
      changes: changesBetween(before, await look()),
    });
  }
  return recorded;
}

export async function readRecorded(): Promise<Recorded[]> {
  return JSON.parse(await readFile(FILE, 'utf8')) as Recorded[];
}

export async function writeRecorded(recorded: readonly Recorded[]): Promise<void> {
  await mkdir(dirname(FILE), { recursive: true });
  await writeFile(FILE, `${JSON.stringify(recorded, null, 2)}\n`);
}

/** Returns the facts that must be equal in each run. Changes within one tick of the clock have no order. */
export function facts({ command, host, exitCode, changes }: Recorded): unknown {
  const made = changes.map(({ path, how, from }) => [path, how, from].join(' ')).toSorted();
  return { command, host, exitCode, made, order: orderOfManifests(changes) };
}

/**
 * Returns the manifests in the order in which they are replaced. The order is reliable, because each replacement takes
 * seconds.
 */
export function orderOfManifests(changes: readonly Change[]): string[] {
  return changes.flatMap(({ path, how }) => (how === 'moved' ? [basename(path)] : []));
}
