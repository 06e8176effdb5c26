/** Clusters in which Refit and k0s meet: a leader of the one, agents of the other, and everything else as in ours. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import {
  type Cluster,
  type ClusterOptions,
  startCluster,
} from '../../../sandbox/cluster/cluster.ts';
import { controllerAddress } from '../../../sandbox/cluster/hosts.ts';
import type { Host } from '../../../sandbox/hosts/host.ts';
import { plans } from '../../../src/api/autopilot/plan.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { loadClusterConfig } from '../../../src/kube/config/kubeconfig.ts';
import { type KubeObject, leases, nodes, type Resource } from '../../../src/kube/resources.ts';
import { isNotFound } from '../../../src/kube/status-error.ts';
import { createClient } from '../../../src/kube/transport/http-client.ts';
import { controlNodes, SIGNAL_DATA_ANNOTATION } from '../../../src/signal/names.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { jsonLogger } from '../../../src/util/log.ts';
import { controlPlane, kubeconfigFor, type User } from '../../testenv/control-plane.ts';
import { K0sLeader } from './k0s-leader.ts';
import { K0sNode } from './k0s-node.ts';
import { grantNodeRights } from './node-rights.ts';
import type { Variant } from './quirks.ts';
import { LEADER_LEASE } from './runtime/lease-election.ts';
import { Recorder } from './runtime/recorder.ts';
import { surroundingsFor } from './surroundings.ts';
import { type Times, timesOf } from './times.ts';

/** Who leads, and whose agents are on the hosts. Which release a k0s agent is of, the version on its host says. */
export interface Combination {
  readonly leader: 'refit' | Variant;
  readonly agents: 'refit' | 'k0s';
}

/** All that must work. */
export const COMBINATIONS: Readonly<Record<string, Combination>> = {
  'our leader, agents of k0s': { leader: 'refit', agents: 'k0s' },
  'a leader of k0s >= 1.35, our agents': { leader: '>=1.35', agents: 'refit' },
  'a leader of k0s <= 1.34, our agents': { leader: '<=1.34', agents: 'refit' },
};

export interface MixedOptions
  extends Omit<ClusterOptions, 'plane' | 'directory' | 'agents' | 'restartDelayMs' | 'refit'> {
  readonly combination: Combination;
  /** Milliseconds between the end of a service and its next start; 300 where absent. */
  readonly restartDelayMs?: number;
  /** Delays of the doubles that matter to a test; all others are a twentieth of the original's. */
  readonly times?: Partial<Times>;
  /** Path of the kubeconfig of a process of Refit, where it is not the usual one. */
  readonly kubeconfig?: (user: User) => Promise<string>;
  /** Arguments for `refit controller`, where that leads. */
  readonly controllerFlags?: readonly string[];
}

export interface Mixed extends AsyncDisposable {
  readonly cluster: Cluster;
  /** What the doubles wrote. */
  readonly recorder: Recorder;
  /** What the doubles logged, by their name; the leader's is `leader`. */
  readonly logs: ReadonlyMap<string, readonly string[]>;
  /** By name of the host; none where the agents are ours. */
  readonly doubles: ReadonlyMap<string, K0sNode>;
  /** Undefined where the leader is ours. */
  readonly leader: K0sLeader | undefined;
  /** Waits until the condition no longer throws, up to 50 s; where it does to the end, what everybody last said comes with it. */
  until(condition: () => Promise<void>): Promise<void>;
}

/** As in stage.ts: nothing that a slow machine would break is any shorter than in the original. */
const { leaseDuration, renewDeadline, drain, readyz, stall } = timesOf(1);
const TIMES: Times = { ...timesOf(0.05), leaseDuration, renewDeadline, drain, readyz, stall };
const PATIENCE = { timeout: 150_000, interval: 200 };

/** Resolves when the leader leads and every agent is started. All that is in the cluster is gone after its disposal. */
export async function startMixed(options: MixedOptions): Promise<Mixed> {
  await using things = new AsyncDisposableStack();
  const {
    combination,
    restartDelayMs = 300,
    controllerFlags,
    times,
    kubeconfig = kubeconfigFor,
    ...wanted
  } = options;
  const directory = await mkdtemp(join(tmpdir(), 'refit-mixed-'));
  things.defer(async () => await rm(directory, { recursive: true }));
  const plane = { url: controlPlane().url, kubeconfig };
  const agents = combination.agents === 'refit' ? {} : { agents: [] };
  const client = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  things.defer(() => client.close());
  // After the end of whoever led, who would put the lease back.
  things.defer(async () => await clear(client));
  // Plans for the original may name downloads with neither https nor a sha256.
  const agentFlags = [...(wanted.agentFlags ?? []), '--unverified-downloads', 'allow'];
  const cluster = await startCluster({
    ...wanted,
    ...agents,
    agentFlags,
    plane,
    directory,
    restartDelayMs,
  });
  things.defer(async () => await cluster.stop());
  // Where nothing is of k0s, the rights that Refit documents must do.
  if (combination.leader !== 'refit' || combination.agents === 'k0s')
    things.use(await grantNodeRights(cluster.client));
  const makers = new Doubles(cluster, { ...TIMES, ...times }, things);

  let leader: K0sLeader | undefined;
  if (combination.leader === 'refit')
    await cluster.startController('refit-controller', controllerFlags);
  else leader = await makers.startLeader(combination.leader);
  await vi.waitFor(async () => await expectHolder(cluster), PATIENCE);
  await vi.waitFor(() => expect(leader?.leads ?? true).toBe(true), PATIENCE);
  // Only now: a k0s controller stands for the lease, too, and would take it.
  if (combination.agents === 'k0s') for (const host of cluster.hosts) await makers.startAgent(host);
  await vi.waitFor(() => {
    for (const double of makers.doubles.values()) expect(double.isAtWork).toBe(true);
  }, PATIENCE);
  const { recorder, logs, doubles } = makers;
  const everything = things.move();
  return {
    cluster,
    recorder,
    logs,
    doubles,
    leader,
    until: async (condition) => {
      try {
        await vi.waitFor(condition, PATIENCE);
      } catch (cause) {
        throw new Error(await story(cluster, logs), { cause });
      }
    },
    [Symbol.asyncDispose]: async () => await everything.disposeAsync(),
  };
}

/** Starts doubles in a cluster, and ends them with it. */
class Doubles {
  readonly recorder = new Recorder();
  readonly logs = new Map<string, string[]>();
  readonly doubles = new Map<string, K0sNode>();
  readonly #cluster: Cluster;
  readonly #times: Times;
  readonly #things: AsyncDisposableStack;

  constructor(cluster: Cluster, times: Times, things: AsyncDisposableStack) {
    this.#cluster = cluster;
    this.#times = times;
    this.#things = things;
  }

  async startLeader(variant: Variant): Promise<K0sLeader> {
    const leader = new K0sLeader({
      ...(await this.#surround('leader', 'kubernetes-admin')),
      variant,
    });
    leader.start();
    this.#things.defer(async () => await leader.stop());
    return leader;
  }

  async startAgent(host: Host): Promise<void> {
    const { name, runsPods } = host;
    const role = host.role === 'controller' && runsPods ? 'controller+worker' : host.role;
    const by = role === 'worker' ? `system:node:${name}` : 'kubernetes-admin';
    // Controllers come first, in the order of their addresses.
    const address = controllerAddress(this.#cluster.hosts.indexOf(host) + 1);
    const double = new K0sNode({ ...(await this.#surround(name, by)), host, role, address });
    this.doubles.set(name, double);
    double.start();
    this.#things.defer(async () => await double.stop());
  }

  async #surround(name: string, by: string): Promise<ReturnType<typeof surroundingsFor>> {
    const log: string[] = [];
    this.logs.set(name, log);
    const path = await kubeconfigFor(by === 'kubernetes-admin' ? 'admin' : { node: name });
    const surroundings = surroundingsFor({
      config: await loadClusterConfig({ path }),
      author: { by, via: name },
      recorder: this.recorder,
      times: this.#times,
      apiPort: this.#cluster.apiPort,
      log: jsonLogger(
        (line) => log.push(line),
        () => systemClock.now(),
        'info',
      ),
    });
    this.#things.defer(() => surroundings.close());
    return surroundings;
  }
}

/** The plan, the signals, and the ends of all logs. */
async function story(
  { client, hosts, directory }: Cluster,
  logs: Doubles['logs'],
): Promise<string> {
  const { status } = await client.get(plans, 'autopilot').catch(() => ({ status: undefined }));
  const signals = await Promise.all(
    hosts.map(async ({ name, role }) => {
      const { metadata } = await client.get<KubeObject>(
        role === 'worker' ? nodes : controlNodes,
        name,
      );
      return `${name}: ${metadata.annotations?.[SIGNAL_DATA_ANNOTATION]}`;
    }),
  );
  const said = [...logs].map(([name, lines]) => `${name} said:\n${lines.slice(-5).join('')}`);
  const files = (await readdir(join(directory, 'logs'))).map(async (name) => {
    const text = await readFile(join(directory, 'logs', name), 'utf8');
    return `${name}:\n${text.trim().split('\n').slice(-8).join('\n')}`;
  });
  return [JSON.stringify(status), ...signals, ...said, ...(await Promise.all(files))].join('\n');
}

async function expectHolder({ client }: Cluster): Promise<void> {
  const { namespace, name } = LEADER_LEASE;
  const { spec } = await client.get(leases, name, { namespace });
  if (!spec?.holderIdentity) throw new Error('nobody leads');
}

/** The next test finds no plan, and a lease that nobody holds. */
async function clear(client: KubeClient): Promise<void> {
  const gone = async (resource: Resource, name: string, namespace?: string): Promise<void> => {
    await client.delete(resource, name, { namespace }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  };
  await gone(plans, 'autopilot');
  await gone(leases, LEADER_LEASE.name, LEADER_LEASE.namespace);
}
