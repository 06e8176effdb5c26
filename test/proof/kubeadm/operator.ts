/** The person who upgrades: runs the commands of docs/guides/kubeadm.md, and kubectl to look. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { lastLines, type RunResult, run } from '../../../tools/controlplane/run.ts';
import { must } from '../../../tools/release/commands.ts';
import { type Cluster, onVersion1 } from './cluster.ts';

export interface OperatorOptions {
  readonly directory: string;
  /** The built `refit`, and the kubectl of the new version. */
  readonly refit: string;
  readonly kubectl: string;
  readonly version: string;
  /** Folder for what each command said. */
  readonly logs: string;
}

export class Operator {
  readonly manifest: string;
  /** A Refit that is killed leaves its sockets there. */
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

  /** Where the machines have those of a version. */
  binaries(version: string): object {
    const names = ['kubeadm', 'kubelet', 'kubectl'];
    return Object.fromEntries(
      names.map((name) => [name, { path: `/opt/kubernetes/${version}/${name}` }]),
    );
  }

  /** Collects host keys and writes the manifest, as the guide tells; `more`: what the guide calls optional. */
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

  /** What a command said, for whoever looks for the cause of a failure. */
  async keep(args: readonly string[], output: string): Promise<void> {
    const { logs } = this.#options;
    await mkdir(logs, { recursive: true });
    const number = String(++this.#commands).padStart(2, '0');
    await writeFile(join(logs, `${number}-${args[0]}.log`), output);
  }

  /** What is wrong if the command must succeed. */
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
