/**
 * Prepares drains for tests: two simulated nodes for each test, workloads that start on the first node, and the
 * clients.
 */
import { expect, vi } from 'vitest';
import { withCordon } from '../../src/drain/cordon-marks.ts';
import { type DrainProgress, drainNode } from '../../src/drain/drain-node.ts';
import { DEFAULT_DRAIN, type DrainOptions } from '../../src/drain/pods.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { type Node, namespaces, nodes, type Pod, pods } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { type Clock, systemClock } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/log.ts';
import { simulatedNode } from '../../tools/controlplane/simulated-nodes.ts';
import { SkewedClock } from '../support/clock/skewed-clock.ts';
import { auditedSince } from './audit.ts';
import { apply, kubeconfigFor, kubectlAs, type User } from './control-plane.ts';

export const PATIENCE = { timeout: 150_000, interval: 200 };

export async function clientOf(user: User): Promise<KubeClient> {
  return createClient(await loadClusterConfig({ path: await kubeconfigFor(user) }));
}

export class Stage {
  readonly namespace: string;
  readonly admin: KubeClient;
  /** Has only the documented rights. */
  readonly controller: KubeClient;
  readonly #nodes: string[] = [];

  constructor(namespace: string, admin: KubeClient, controller: KubeClient) {
    this.namespace = namespace;
    this.admin = admin;
    this.controller = controller;
  }

  static async open(namespace: string): Promise<Stage> {
    const stage = new Stage(namespace, await clientOf('admin'), await clientOf('controller'));
    await stage.addNamespace(namespace);
    return stage;
  }

  async addNamespace(name: string): Promise<void> {
    await this.admin.create(namespaces, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name },
    });
    const account = ['get', 'serviceaccount', 'default', '-n', name];
    await vi.waitFor(
      async () => expect((await kubectlAs('admin', account)).ok).toBe(true),
      PATIENCE,
    );
  }

  async close(): Promise<void> {
    for (const { metadata } of (await this.admin.list(pods, { namespace: this.namespace })).items)
      await this.release(metadata.name);
    await kubectlAs('admin', ['delete', 'namespace', this.namespace, '--wait=true']);
    for (const name of this.#nodes) await this.admin.delete(nodes, name);
    this.admin.close();
    this.controller.close();
  }

  /**
   * Creates the nodes `<name>-a` and `<name>-b`, which workloads find by the label `stage`. Cordons `<name>-a` when all
   * `expected` pods run on it. The pods can then move to `<name>-b`. Returns the name of the cordoned node.
   */
  async set(name: string, workloads: readonly object[], expected: number): Promise<string> {
    const from = `${name}-a`;
    const to = `${name}-b`;
    for (const node of [from, to]) {
      const { metadata, ...rest } = simulatedNode(node);
      const labels = { ...metadata.labels, stage: name };
      await this.admin.create(nodes, {
        ...rest,
        metadata: { ...metadata, labels },
        spec: { unschedulable: node === to },
      });
      this.#nodes.push(node);
    }
    if (workloads.length > 0)
      await apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: workloads }));
    await vi.waitFor(async () => expect(await this.running(from)).toHaveLength(expected), PATIENCE);
    await this.change(from, (node) => withCordon(node, 'rollout/1'));
    await this.change(to, (node) => ({ ...node, spec: { ...node.spec, unschedulable: false } }));
    return from;
  }

  /** Changes the Node as the controller. Retries on conflicts. */
  async change(name: string, edit: (node: Node) => Node): Promise<void> {
    const { controller } = this;
    const write = async (): Promise<void> => {
      await controller.replace(nodes, edit(await controller.get(nodes, name)));
    };
    await vi.waitFor(write, PATIENCE);
  }

  async podsOn(node: string): Promise<Pod[]> {
    return (await this.admin.list(pods, { fieldSelector: `spec.nodeName=${node}` })).items;
  }

  async running(node: string): Promise<Pod[]> {
    return (await this.podsOn(node)).filter(({ status }) => status?.phase !== 'Pending');
  }

  /** Removes a pod's finalizers. */
  async release(name: string): Promise<void> {
    const patch = { metadata: { finalizers: null } };
    await this.admin.patch(pods, name, patch, { type: 'merge', namespace: this.namespace });
  }
}

export interface RunningDrain {
  readonly progress: DrainProgress[];
  readonly done: Promise<void>;
}

export function beginDrain(
  node: string,
  client: KubeClient,
  clock: Clock = systemClock,
  options: DrainOptions = DEFAULT_DRAIN,
): RunningDrain {
  const progress: DrainProgress[] = [];
  const onChange = (state: DrainProgress): void => void progress.push(state);
  const { signal: abort } = new AbortController();
  const parts = { client, clock, random: Math.random, log: silentLogger, abort, onChange };
  return { progress, done: drainNode(node, options, parts) };
}

/** Returns a clock that runs faster, so that a drain's pauses of minutes take seconds. */
export function fastClock(): Clock {
  return new SkewedClock(systemClock, { rate: 20 });
}

/** The status codes of evictions of pods whose names begin with `prefix`, from the server's audit log. */
export async function auditedEvictions(prefix: string): Promise<(number | undefined)[]> {
  return (await auditedSince(0, '"eviction"'))
    .filter(({ objectRef }) => objectRef?.name?.startsWith(prefix) === true)
    .map(({ responseStatus }) => responseStatus?.code);
}
