/** A cluster of real k0s: three controllers with etcd, and workers with kubelets. */
import { cp, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { COMPONENTS, COMPONENTS_NAMESPACE } from '../../../../src/health/component-monitor.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { loadClusterConfig } from '../../../../src/kube/config/kubeconfig.ts';
import { configMaps, leases, type Node, nodes } from '../../../../src/kube/resources.ts';
import { createClient } from '../../../../src/kube/transport/http-client.ts';
import { controlNodes } from '../../../../src/signal/names.ts';
import { type RunResult, run } from '../../../../tools/controlplane/run.ts';
import { Machine } from '../../machines/machine.ts';
import { OPERATOR } from '../../machines/namespaces.ts';
import { until } from '../../wait.ts';
import type { Release } from '../options.ts';
import { EXECUTABLE, FLAGS, furnish, TOKEN } from './furnish.ts';

/** Whose agents run on the hosts. k0s's own agents read the setting at their start only. */
export type OwnAgents = 'on' | 'off';

export const AUTOPILOT_OFF = '--disable-components=autopilot\n';

export interface ClusterOptions {
  readonly workers: number;
  readonly directory: string;
  readonly parts: string;
  readonly group: string;
  readonly from: Release;
  readonly restartSeconds: number;
  readonly log: (line: string) => void;
}

export class Cluster {
  readonly controllers: readonly Machine[];
  readonly workers: readonly Machine[];
  readonly machines: readonly Machine[];
  /** The administrator's kubeconfig. Its server is the load balancer. */
  readonly kubeconfig: string;
  readonly directory: string;
  readonly #options: ClusterOptions;
  #client: KubeClient | undefined;

  constructor(options: ClusterOptions) {
    const { directory, parts, group } = options;
    const make = (name: string, number: number): Machine =>
      new Machine({ name, number, directory: join(directory, name), parts, group });
    this.controllers = [1, 2, 3].map((each) => make(`c${each}`, 10 + each));
    this.workers = Array.from({ length: options.workers }, (_, index) =>
      make(`w${index + 1}`, 21 + index),
    );
    this.machines = [...this.controllers, ...this.workers];
    this.kubeconfig = join(directory, 'admin.conf');
    this.directory = directory;
    this.#options = options;
  }

  get client(): KubeClient {
    if (this.#client === undefined) throw new Error('the cluster is not made yet');
    return this.#client;
  }

  named(name: string): Machine {
    const found = this.machines.find((machine) => machine.name === name);
    if (found === undefined) throw new Error(`no machine is called ${name}`);
    return found;
  }

  /** Makes the cluster as the documentation of k0s describes it. */
  async make(): Promise<void> {
    const { log, from, parts, restartSeconds } = this.#options;
    const hosts = this.machines.map(({ address, name }) => `${address} ${name}\n`).join('');
    const controllers = this.controllers.map(({ address }) => address);
    await Promise.all(
      this.machines.map(async (machine) => {
        await mkdir(join(this.directory, machine.name));
        await machine.create();
        const role = this.controllers.includes(machine) ? 'controller' : 'worker';
        await furnish(machine, {
          role,
          k0s: from.executable,
          parts,
          controllers,
          hosts,
          restartSeconds,
        });
        await machine.powerOn();
      }),
    );
    const [first, ...others] = this.controllers;
    if (first === undefined) throw new Error('a cluster needs a controller');
    await startK0s(first);
    await this.isReady(first);
    log('the first controller runs');
    const conf = await readFile(join(first.root, 'var/lib/k0s/pki/admin.conf'), 'utf8');
    await writeFile(
      this.kubeconfig,
      conf.replace(/server: .*/, `server: https://${OPERATOR}:6443`),
    );
    this.#client = createClient(await loadClusterConfig({ path: this.kubeconfig }));
    await this.#join(first, 'controller', others.slice(0, 1));
    await this.#join(first, 'controller', others.slice(1));
    log('three controllers run');
    await this.#join(first, 'worker', this.workers);
    await this.settled(from.version);
    log('every worker is Ready');
  }

  async #join(first: Machine, role: string, machines: readonly Machine[]): Promise<void> {
    const token = await first.must(`${EXECUTABLE} token create --role=${role}`);
    for (const machine of machines) {
      await writeFile(join(machine.root, TOKEN), token);
      await startK0s(machine);
      if (role === 'controller') await this.isReady(machine);
    }
  }

  async isReady(machine: Machine): Promise<void> {
    await until(`the API server of ${machine.name} to be ready`, 300, async () => {
      const { ok } = await machine.run(`${EXECUTABLE} kubectl get --raw /readyz`);
      return ok;
    });
  }

  /** kubectl as the administrator. It is the one that k0s carries. */
  async kubectl(...args: readonly string[]): Promise<RunResult> {
    return await this.#kubectl(args, '');
  }

  /** `kubectl apply`, which must succeed. */
  async apply(object: object): Promise<void> {
    const { ok, stderr } = await this.#kubectl(['apply', '-f', '-'], JSON.stringify(object));
    if (!ok) throw new Error(`kubectl apply: ${stderr.trim()}`);
  }

  async #kubectl(args: readonly string[], input: string): Promise<RunResult> {
    const environment = { KUBECONFIG: this.kubeconfig };
    const { executable } = this.#options.from;
    return await run(executable, ['kubectl', ...args], { environment, input });
  }

  /** Who holds the Lease of the leader. It is empty if nobody does. */
  async holder(): Promise<string> {
    const words = ['get', 'lease', '-n', 'k0s-autopilot', 'k0s-autopilot-controller'];
    const { stdout } = await this.kubectl(...words, '-o', 'jsonpath={.spec.holderIdentity}');
    return stdout.trim();
  }

  /** The controller whose k0s leads. Each controller holds a Lease of its own under the same identity. */
  async leader(): Promise<Machine | undefined> {
    const holder = await this.holder();
    const { items } = await this.client.list(leases, { namespace: 'kube-node-lease' });
    const found = items.find(
      ({ metadata, spec }) =>
        metadata.name.startsWith('k0s-ctrl-') && holder !== '' && spec?.holderIdentity === holder,
    );
    return found && this.named(found.metadata.name.slice('k0s-ctrl-'.length));
  }

  /** Waits until every Node is Ready, and every host reports this version. */
  async settled(version: string): Promise<void> {
    let wrong: readonly string[] = [];
    await until(`every host to run ${version}`, 420, async () => {
      wrong = await this.unsettled(version).catch((error: unknown) => [String(error)]);
      return wrong.length === 0;
    }).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${wrong.join('; ')}`);
    });
  }

  /** Returns what is not as it should be after an upgrade to `version`. */
  async unsettled(version: string): Promise<string[]> {
    const running = await Promise.all(
      this.machines.map(async (machine) => {
        const found = await this.versionOn(machine);
        return found === version ? [] : [`${machine.name} runs ${found}`];
      }),
    );
    const { items } = await this.client.list(nodes);
    const [kubernetes = ''] = /^v[\d.]+\+k0s/.exec(version) ?? [];
    const notReady = this.workers.flatMap(({ name }) => {
      const node = items.find(({ metadata }) => metadata.name === name);
      if (node === undefined) return [`${name} has no Node`];
      const kubelet = node.status?.nodeInfo?.kubeletVersion;
      return [
        ...(isReady(node) ? [] : [`${name} is not Ready`]),
        ...(kubelet === kubernetes ? [] : [`the kubelet of ${name} is ${kubelet}`]),
      ];
    });
    return [...running.flat(), ...notReady];
  }

  /**
   * Returns what an upgrade left behind on Nodes and hosts. The Plan may end before an agent of the other product has
   * finished, so this gives the agents a minute.
   */
  async left(): Promise<string[]> {
    let found: string[] = [];
    await until('nothing to be left', 60, async () => {
      found = await this.#leftNow();
      return found.length === 0;
    }).catch(() => undefined);
    return found;
  }

  async #leftNow(): Promise<string[]> {
    const { items } = await this.client.list(nodes);
    const cordoned = items.flatMap(({ metadata, spec }) =>
      spec?.unschedulable === true ? [`${metadata.name} is cordoned`] : [],
    );
    const files = await Promise.all(
      this.machines.map(async (machine) => {
        const found = await machine.must('ls -A /usr/local/bin');
        const strange = found
          .trim()
          .split('\n')
          .filter((name) => /^\.?k0s./.test(name) && name !== 'k0s.previous');
        return strange.map((name) => `${machine.name} keeps /usr/local/bin/${name}`);
      }),
    );
    return [...cordoned, ...files.flat()];
  }

  /** The version that the running k0s of a host reports on its socket. */
  async versionOn(machine: Machine): Promise<string> {
    const { stdout, stderr } = await machine.run(`${EXECUTABLE} status -o json`);
    try {
      return (JSON.parse(stdout) as { Version: string }).Version;
    } catch {
      return (stderr || stdout).trim().split('\n').at(-1) ?? 'nothing';
    }
  }

  /**
   * Installs a release on all hosts by hand, with or without k0s's own agents, and removes what plans left. The data of
   * the cluster stay.
   */
  async reset({ executable, version }: Release, agents: OwnAgents): Promise<void> {
    await this.forget();
    await Promise.all(
      this.machines.map(async (machine) => {
        await machine.must('systemctl stop k0s');
        await install(machine, executable);
        await machine.must(
          'rm -rf /usr/local/bin/k0s.previous /usr/local/bin/k0s.tmp /usr/local/bin/.k0s.refit*',
        );
        if (this.controllers.includes(machine))
          await writeFile(join(machine.root, FLAGS), agents === 'off' ? AUTOPILOT_OFF : '\n');
      }),
    );
    await Promise.all(this.controllers.map(async (machine) => await startK0s(machine)));
    for (const machine of this.controllers) await this.isReady(machine);
    // A worker reads its profile only when it starts.
    await until(`the worker profiles to turn k0s's own agents ${agents}`, 180, async () =>
      (await this.profiles()).every((each) => each === (agents === 'off')),
    );
    await Promise.all(this.workers.map(async (machine) => await startK0s(machine)));
    await this.settled(version);
    await this.#componentsWork();
  }

  /** After a restart of all controllers, the Leases of the old leaders must expire before new leaders work. */
  async #componentsWork(): Promise<void> {
    for (const name of COMPONENTS) {
      const renewals = new Set<string>();
      await until(`${name} to renew its Lease`, 120, async () => {
        const { spec } = await this.client.get(leases, name, { namespace: COMPONENTS_NAMESPACE });
        renewals.add(spec?.renewTime ?? '');
        return renewals.size > 1;
      });
    }
  }

  /** Whether each worker profile switches k0s's own agent off. */
  async profiles(): Promise<boolean[]> {
    const { items } = await this.client.list(configMaps, { namespace: 'kube-system' });
    return items
      .filter(({ metadata }) => metadata.name.startsWith('worker-config-'))
      .map(({ data }) => data?.['autopilotDisabled'] === 'true');
  }

  /** Removes Plans, policies and the annotations of agents and leaders. */
  async forget(): Promise<void> {
    await this.kubectl('delete', 'plans.autopilot.k0sproject.io', '--all');
    for (const kind of ['upgradepolicies', 'noderollouts'])
      await this.kubectl('delete', kind, '--all', '--ignore-not-found');
    for (const resource of [nodes, controlNodes] as const) {
      const { items } = await this.client.list(resource);
      for (const { metadata } of items) {
        const names = Object.keys(metadata.annotations ?? {}).filter((name) => LEFT.test(name));
        if (names.length === 0) continue;
        const annotations = Object.fromEntries(names.map((name) => [name, null]));
        await this.client.patch(
          resource,
          metadata.name,
          { metadata: { annotations } },
          { type: 'merge' },
        );
      }
    }
    for (const { name } of this.workers) await this.kubectl('uncordon', name);
  }
}

const LEFT = /^(?:k0sproject\.io\/autopilot|upgrade\.refit\.dev)/;

export async function startK0s(machine: Machine): Promise<void> {
  await machine.must('rm -f /var/lib/services/k0s.off; systemctl start k0s');
}

/** Puts an executable in place as an administrator does: with one rename. */
export async function install(machine: Machine, executable: string): Promise<void> {
  const at = join(machine.live, 'usr/local/bin');
  await cp(executable, join(at, 'k0s.new'));
  await rename(join(at, 'k0s.new'), join(at, 'k0s'));
}

const isReady = ({ status }: Node): boolean =>
  status?.conditions?.some(({ type, status: now }) => type === 'Ready' && now === 'True') === true;
