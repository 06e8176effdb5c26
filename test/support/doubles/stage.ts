/**
 * A cluster that runs only the original k0s: doubles on stand-in hosts, a real API server, and a record of all writes
 * of the doubles.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { controllerAddress } from '../../../sandbox/cluster/hosts.ts';
import { installDefinitions } from '../../../sandbox/cluster/objects.ts';
import type { Plane } from '../../../sandbox/cluster/plane.ts';
import type { DownloadServer, Fault } from '../../../sandbox/hosts/download-server.ts';
import { type Host, startHost } from '../../../sandbox/hosts/host.ts';
import { type Plan, plans } from '../../../src/api/autopilot/plan.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { loadClusterConfig } from '../../../src/kube/config/kubeconfig.ts';
import { leases, nodes, type Resource } from '../../../src/kube/resources.ts';
import { isNotFound } from '../../../src/kube/status-error.ts';
import { createClient } from '../../../src/kube/transport/http-client.ts';
import { decodeSignal } from '../../../src/signal/annotations.ts';
import { controlNodes } from '../../../src/signal/names.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { jsonLogger } from '../../../src/util/log.ts';
import { freePort } from '../../../tools/controlplane/ports.ts';
import { simulatedNode } from '../../../tools/controlplane/simulated-nodes.ts';
import { controlPlane, kubeconfigFor } from '../../testenv/control-plane.ts';
import { K0sNode } from './k0s-node.ts';
import type { Role } from './k0s-process.ts';
import { grantNodeRights } from './node-rights.ts';
import { OLD, servePayloads } from './payload-files.ts';
import { LEADER_LEASE } from './runtime/lease-election.ts';
import { Recorder } from './runtime/recorder.ts';
import { surroundingsFor } from './surroundings.ts';
import { type Times, timesOf } from './times.ts';
import { statusOf } from './write-lines.ts';

export interface StageOptions {
  readonly plane: Pick<Plane, 'url' | 'kubeconfig'>;
  /** The names in the order in which the controllers start. The first controller leads. */
  readonly controllers: readonly string[];
  readonly workers?: readonly string[];
  /** The versions that hosts run at first, if not OLD. */
  readonly versions?: Readonly<Record<string, string>>;
  /** Controllers that are workers, too. */
  readonly workloads?: readonly string[];
  /** The targets that leaders signal, in this order. If absent, leaders choose at random. */
  readonly picks?: readonly string[];
  /** Controllers that try to get the Lease so rarely that they never become the leader. */
  readonly reluctant?: readonly string[];
  readonly faults?: readonly Fault[];
  readonly times?: Partial<Times>;
}

/** The delays of the original are divided by twenty. Delays that a slow machine could exceed keep their length. */
const SCALE = 0.05;
const { leaseDuration, renewDeadline, drain, readyz, stall } = timesOf(1);
const TIMES: Times = { ...timesOf(SCALE), leaseDuration, renewDeadline, drain, readyz, stall };
/** RestartSec of the original's unit, scaled in the same way. */
const RESTART_DELAY_MS = 10_000 * SCALE;
const PLAYED = 'kwok.x-k8s.io/node';
const PATIENCE = { timeout: 150_000, interval: 100 };
/**
 * Used if a test waits for a final state. With the shorter interval, these requests were a tenth of all requests in
 * tests.
 */
const FOR_THE_END = { ...PATIENCE, interval: 200 };

/** Starts a stage on the control plane of the test run. */
export async function startStage(options: Omit<StageOptions, 'plane'>): Promise<Stage> {
  return await Stage.start({
    ...options,
    plane: { url: controlPlane().url, kubeconfig: kubeconfigFor },
  });
}

export class Stage implements AsyncDisposable {
  readonly recorder = new Recorder();
  readonly hosts = new Map<string, Host>();
  readonly doubles = new Map<string, K0sNode>();
  /** The log lines of each double. Only the log of the original says why something fails. */
  readonly logs = new Map<string, string[]>();
  /** A client with administrator rights. Its writes are not recorded. */
  readonly client: KubeClient;
  readonly downloads: DownloadServer;
  readonly directory: string;
  readonly #options: StageOptions;
  readonly #picks: string[];
  #apiPort = 0;
  #everything = new AsyncDisposableStack();
  /** The hosts and their doubles. More of them may be added later. */
  #things = new AsyncDisposableStack();

  private constructor(
    options: StageOptions,
    client: KubeClient,
    directory: string,
    downloads: DownloadServer,
  ) {
    this.#options = options;
    this.#picks = [...(options.picks ?? [])];
    this.client = client;
    this.directory = directory;
    this.downloads = downloads;
  }

  /** Resolves when every double is running, and the first controller leads. */
  static async start(options: StageOptions): Promise<Stage> {
    await using things = new AsyncDisposableStack();
    const client = createClient(
      await loadClusterConfig({ path: await options.plane.kubeconfig('admin') }),
    );
    things.defer(() => client.close());
    await installDefinitions(client, systemClock);
    things.use(await grantNodeRights(client));
    const directory = await mkdtemp(join(tmpdir(), 'refit-k0s-'));
    things.defer(async () => await rm(directory, { recursive: true }));
    const downloads = await servePayloads(directory, options.faults ?? []);
    things.defer(async () => await downloads.stop());
    const stage = new Stage(options, client, directory, downloads);
    things.defer(async () => await stage.#clear());
    stage.#apiPort = await freePort();
    const { controllers, workers = [] } = options;
    stage.#things = things.use(new AsyncDisposableStack());
    for (const [index, name] of [...controllers, ...workers].entries())
      await stage.#addHost(name, index);
    for (const name of [...controllers, ...workers]) await stage.#bringToWork(name);
    stage.#everything = things.move();
    return stage;
  }

  /** Returns an existing host. */
  host(name: string): Host {
    const host = this.hosts.get(name);
    if (host === undefined) throw new Error(`there is no host ${name}`);
    return host;
  }

  double(name: string): K0sNode {
    const double = this.doubles.get(name);
    if (double === undefined) throw new Error(`there is no double ${name}`);
    return double;
  }

  async create(plan: Plan): Promise<void> {
    await this.client.create(plans, plan);
  }

  async deletePlan(): Promise<void> {
    await this.client.delete(plans, 'autopilot');
  }

  async planState(): Promise<string> {
    return (await this.client.get(plans, 'autopilot')).status?.state ?? '';
  }

  /**
   * Delays the next write in which that process sets the status `status`. The write is sent after `meanwhile` has
   * ended.
   */
  holdStatus(name: string, status: string, meanwhile: () => Promise<void>): void {
    this.recorder.hold = async (write) => {
      if (write.via !== name || statusOf(write.annotations ?? {}) !== status) return;
      this.recorder.hold = () => Promise.resolve();
      await meanwhile();
    };
  }

  /**
   * Returns the status of the signal on the object of that name. Empty if the signal has no status or if there is no
   * signal.
   */
  async status(name: string): Promise<string> {
    const { metadata } = await this.client.get(this.#resourceOf(name), name);
    return decodeSignal(metadata.annotations)?.status?.status ?? '';
  }

  async isCordoned(name: string): Promise<boolean> {
    return (await this.client.get(nodes, name)).spec?.unschedulable === true;
  }

  /** Waits until the condition no longer throws. */
  async until(condition: () => void | Promise<void>): Promise<void> {
    await vi.waitFor(condition, PATIENCE);
  }

  /** Waits until the Plan has this state, and until the process that wrote the state has received its answer. */
  async untilPlan(state: string): Promise<void> {
    await vi.waitFor(async () => expect(await this.planState()).toBe(state), FOR_THE_END);
    await this.until(() => {
      const last = this.recorder.writes.findLast(({ resource }) => resource === 'plans/status');
      expect(last?.code).not.toBe(0);
    });
  }

  async register(name: string): Promise<void> {
    await this.client.create(nodes, simulatedNode(name));
    await this.until(async () => {
      const { status } = await this.client.get(nodes, name);
      expect(status?.conditions).toContainEqual(
        expect.objectContaining({ type: 'Ready', status: 'True' }),
      );
    });
  }

  /**
   * Adds a worker whose name differs from the name of the Node that its kubelet registers. Does not wait for the
   * worker.
   */
  async addStray(name: string, node: string): Promise<K0sNode> {
    const directory = join(this.directory, name);
    const host = await startHost({
      name,
      role: 'worker',
      directory,
      version: OLD,
      restartDelayMs: RESTART_DELAY_MS,
    });
    this.#things.defer(async () => await host.stop());
    return await this.#startDouble(host, 'worker', { node });
  }

  /** Makes the node look as if its kubelet has died: no process reports that it is ready. */
  async unready(name: string): Promise<void> {
    // Without the annotation, kwok no longer simulates its kubelet.
    await this.client.patch(
      nodes,
      name,
      { metadata: { annotations: { [PLAYED]: null } } },
      { type: 'merge' },
    );
    const conditions = [
      { type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown', message: '' },
    ];
    await this.client.patch(
      nodes,
      name,
      { status: { conditions } },
      { type: 'strategic', subresource: 'status' },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#everything.disposeAsync();
  }

  #roleOf(name: string): Role {
    if (!this.#options.controllers.includes(name)) return 'worker';
    return this.#options.workloads?.includes(name) ? 'controller+worker' : 'controller';
  }

  #resourceOf(name: string): Resource {
    return this.#roleOf(name) === 'worker' ? nodes : controlNodes;
  }

  async #addHost(name: string, index: number): Promise<void> {
    const role = this.#roleOf(name);
    const { plane, versions } = this.#options;
    const listen = `${controllerAddress(index + 1)}:${this.#apiPort}`;
    const host = await startHost({
      name,
      role: role === 'worker' ? 'worker' : 'controller',
      directory: join(this.directory, name),
      version: versions?.[name] ?? OLD,
      restartDelayMs: RESTART_DELAY_MS,
      ...(role === 'worker' ? {} : { apiServer: { listen, upstream: new URL(plane.url).host } }),
    });
    this.#things.defer(async () => await host.stop());
    this.hosts.set(name, host);
    if (role !== 'controller') await this.register(name);
  }

  async #bringToWork(name: string): Promise<void> {
    const role = this.#roleOf(name);
    const double = await this.#startDouble(
      this.host(name),
      role,
      role === 'worker' ? { node: name } : 'admin',
    );
    const leads = this.#options.controllers[0] === name;
    await this.until(() => expect(leads ? double.leads : double.isAtWork).toBe(true));
  }

  async #startDouble(
    host: Host,
    role: Role,
    user: { readonly node: string } | 'admin',
  ): Promise<K0sNode> {
    const { name } = host;
    const { plane, picks, reluctant = [], times } = this.#options;
    const log: string[] = [];
    this.logs.set(name, log);
    const surroundings = surroundingsFor({
      config: await loadClusterConfig({ path: await plane.kubeconfig(user) }),
      author: { by: user === 'admin' ? 'kubernetes-admin' : `system:node:${user.node}`, via: name },
      recorder: this.recorder,
      times: { ...TIMES, ...times, ...(reluctant.includes(name) ? { leaseRetry: 3_600_000 } : {}) },
      apiPort: this.#apiPort,
      log: jsonLogger(
        (line) => log.push(line),
        () => systemClock.now(),
        'info',
      ),
      ...(picks && { pick: (candidates) => this.#pick(candidates) }),
    });
    this.#things.defer(() => surroundings.close());
    const address = controllerAddress([...this.hosts.keys()].indexOf(name) + 1);
    const double = new K0sNode({ ...surroundings, host, role, address });
    this.doubles.set(name, double);
    double.start();
    this.#things.defer(async () => await double.stop());
    return double;
  }

  #pick(candidates: readonly string[]): string {
    const next = this.#picks.shift();
    if (next === undefined || !candidates.includes(next))
      throw new Error(`${next} is not one of ${candidates.join(' ')}`);
    return next;
  }

  /** Removes everything that the doubles and the test created in the cluster. */
  async #clear(): Promise<void> {
    const gone = async (resource: Resource, name: string, namespace?: string): Promise<void> => {
      await this.client.delete(resource, name, { namespace }).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    };
    await gone(plans, 'autopilot');
    await gone(leases, LEADER_LEASE.name, LEADER_LEASE.namespace);
    for (const name of this.hosts.keys()) {
      await gone(controlNodes, name);
      await gone(nodes, name);
      await gone(leases, name, 'kube-node-lease');
    }
  }
}
