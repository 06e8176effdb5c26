/**
 * Clusters that run both Refit and k0s: the leader is from one project and the agents are from the other. Everything
 * else is as in clusters that run only Refit.
 */
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

/**
 * The project of the leader, and the project of the agents on the hosts. The release of a k0s agent is the version on
 * its host.
 */
export interface Combination {
  readonly leader: 'refit' | Variant;
  readonly agents: 'refit' | 'k0s';
}

/** The combinations that must work. */
export const COMBINATIONS: Readonly<Record<string, Combination>> = {
  'our leader, agents of k0s': { leader: 'refit', agents: 'k0s' },
  'a leader of k0s >= 1.35, our agents': { leader: '>=1.35', agents: 'refit' },
  'a leader of k0s <= 1.34, our agents': { leader: '<=1.34', agents: 'refit' },
};

export interface MixedOptions
  extends Omit<ClusterOptions, 'plane' | 'directory' | 'agents' | 'restartDelayMs' | 'refit'> {
  readonly combination: Combination;
  /** Milliseconds between the end of a service and its next start. The default is 300. */
  readonly restartDelayMs?: number;
  /** Delays of the doubles that a test sets itself. All other delays are a twentieth of the original's. */
  readonly times?: Partial<Times>;
  /** Returns the path of the kubeconfig of a Refit process, if it is not the usual one. */
  readonly kubeconfig?: (user: User) => Promise<string>;
  /** Arguments for `refit controller`, if Refit leads. */
  readonly controllerFlags?: readonly string[];
}

export interface Mixed extends AsyncDisposable {
  readonly cluster: Cluster;
  /** The writes of the doubles. */
  readonly recorder: Recorder;
  /** The log lines of the doubles, by the name of the double. The name of the leader is `leader`. */
  readonly logs: ReadonlyMap<string, readonly string[]>;
  /** The doubles by the name of their host. Empty if the agents are ours. */
  readonly doubles: ReadonlyMap<string, K0sNode>;
  /** Undefined if the leader is ours. */
  readonly leader: K0sLeader | undefined;
  /**
   * Waits up to 50 s until the condition no longer throws. If it still throws then, the error contains the last log
   * lines of all processes.
   */
  until(condition: () => Promise<void>): Promise<void>;
}

/** The same delays as in stage.ts. A delay that a slow machine could exceed is as long as in the original. */
const { leaseDuration, renewDeadline, drain, readyz, stall } = timesOf(1);
const TIMES: Times = { ...timesOf(0.05), leaseDuration, renewDeadline, drain, readyz, stall };
const PATIENCE = { timeout: 150_000, interval: 200 };

/**
 * Resolves when the leader leads and every agent has started. The disposal removes everything that the test created in
 * the cluster.
 */
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
  // The Lease is deleted only after the leader has ended, because the leader would create it again.
  things.defer(async () => await clear(client));
  // Plans for the original may contain downloads that use no https and have no sha256.
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
  // If no part of the cluster is from k0s, the rights in Refit's documentation must be enough.
  if (combination.leader !== 'refit' || combination.agents === 'k0s')
    things.use(await grantNodeRights(cluster.client));
  const makers = new Doubles(cluster, { ...TIMES, ...times }, things);

  let leader: K0sLeader | undefined;
  if (combination.leader === 'refit')
    await cluster.startController('refit-controller', controllerFlags);
  else leader = await makers.startLeader(combination.leader);
  await vi.waitFor(async () => await expectHolder(cluster), PATIENCE);
  await vi.waitFor(() => expect(leader?.leads ?? true).toBe(true), PATIENCE);
  // The agents start only after the leader leads, because a k0s controller would also take part in the leader election
  // and could win it.
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

/** Starts doubles in a cluster, and stops them when the cluster stops. */
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
    // The hosts of controllers come first in the list, in the order of their addresses.
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

/** Returns the plan, the signals, and the last lines of all logs, for the message of a failed test. */
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

/** Deletes the plan and the Lease, so that the next test finds no plan and no leader. */
async function clear(client: KubeClient): Promise<void> {
  const gone = async (resource: Resource, name: string, namespace?: string): Promise<void> => {
    await client.delete(resource, name, { namespace }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  };
  await gone(plans, 'autopilot');
  await gone(leases, LEADER_LEASE.name, LEADER_LEASE.namespace);
}
