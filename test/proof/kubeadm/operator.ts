/**
 * Acts as the person who upgrades the cluster. It runs the commands of docs/guides/kubeadm.md, and reads the cluster
 * with kubectl.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { lastLines, type RunResult, run } from '../../../tools/controlplane/run.ts';
import { must } from '../../../tools/release/commands.ts';
import { onVersion1 } from '../machines/kernel.ts';
import type { Cluster } from './cluster.ts';

export interface OperatorOptions {
  readonly directory: string;
  /** The path of the built `refit`. `kubectl` is the path of the kubectl of the new version. */
  readonly refit: string;
  readonly kubectl: string;
  readonly version: string;
  /** The folder for the output of each command. */
  readonly logs: string;
}

export class Operator {
  readonly manifest: string;
  /** Sets the folder for temporary files. If Refit is killed, its sockets stay in this folder. */
  readonly environment: Readonly<Record<string, string>>;
  readonly refit: string;
  readonly kubectl: string;
  readonly #cluster: Cluster;
  readonly #options: OperatorOptions;
  #commands = 0;

  constructor(cluster: Cluster, options: OperatorOptions) {
    this.manifest = join(options.directory, 'cluster.yaml');
    this.environment = { TMPDIR: options.directory };
    this.refit = options.refit;
    this.kubectl = options.kubectl;
    this.#cluster = cluster;
    this.#options = options;
  }

  /** Returns the paths of the binaries of a version on the machines. */
  binaries(version: string): object {
    const names = ['kubeadm', 'kubelet', 'kubectl'];
    return Object.fromEntries(
      names.map((name) => [name, { path: `/opt/kubernetes/${version}/${name}` }]),
    );
  }

  /**
   * Collects the host keys and writes the manifest, as the guide describes. `more` has fields that the guide calls
   * optional.
   */
  async prepare(more: object = {}): Promise<void> {
    const { machines, controlPlanes, identity, kubeconfig } = this.#cluster;
    const { directory, version } = this.#options;
    const keys = await must(
      'ssh-keyscan',
      machines.map(({ address }) => address),
    );
    await writeFile(join(directory, 'known_hosts'), keys);
    const manifest = {
      version,
      kubeconfig,
      concurrent: 2,
      hosts: machines.map((machine) => ({
        name: machine.name,
        address: machine.address,
        role: controlPlanes.includes(machine) ? 'controlPlane' : 'worker',
      })),
      binaries: this.binaries(version),
      ...(onVersion1() ? { kubeadm: { ignorePreflightErrors: ['SystemVerification'] } } : {}),
      ssh: { user: 'root', identityFile: identity, knownHostsFile: './known_hosts' },
      ...more,
    };
    await writeFile(this.manifest, stringify(manifest));
  }

  /** `refit kubeadm …` with the manifest. */
  command(...args: readonly string[]): [command: string, args: string[]] {
    return [process.execPath, [this.refit, 'kubeadm', ...args, '--manifest', this.manifest]];
  }

  async kubeadm(...args: readonly string[]): Promise<RunResult> {
    const result = await run(...this.command(...args), { environment: this.environment });
    await this.keep(args, result.stdout + result.stderr);
    return result;
  }

  /** Writes the output of a command into a file, for those who look for the cause of a failure. */
  async keep(args: readonly string[], output: string): Promise<void> {
    const { logs } = this.#options;
    await mkdir(logs, { recursive: true });
    const number = String(++this.#commands).padStart(2, '0');
    await writeFile(join(logs, `${number}-${args[0]}.log`), output);
  }

  /** Runs a command that must succeed, and returns what is wrong. */
  async succeeds(...args: readonly string[]): Promise<string[]> {
    const { ok, stdout, stderr } = await this.kubeadm(...args);
    return ok ? [] : [lastLines(stdout + stderr)];
  }

  /** kubectl with the administrator's kubeconfig. */
  async administer(...args: readonly string[]): Promise<string> {
    return await must(this.kubectl, ['--kubeconfig', this.#cluster.kubeconfig, ...args]);
  }

  /** An object of kube-system, or all Nodes. */
  async get<T>(...what: readonly string[]): Promise<T> {
    return JSON.parse(
      await this.administer('-n', 'kube-system', 'get', ...what, '-o', 'json'),
    ) as T;
  }
}
