/** Workers without a host. The test itself writes the reports that their agents would write. */

import { expect, vi } from 'vitest';
import { createNode, reportReady } from '../../sandbox/cluster/objects.ts';
import { type K0sUpdate, type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { cordonOwner } from '../../src/drain/cordon-marks.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { leases, type Node, nodes, pods } from '../../src/kube/resources.ts';
import { ifFound } from '../../src/kube/status-error.ts';
import {
  decodeReport,
  decodeSignal,
  encodeSignal,
  type SignalData,
} from '../../src/signal/annotations.ts';
import { CENTRAL_CORDONING_LABEL } from '../../src/signal/names.ts';
import { microTime, rfc3339 } from '../../src/util/clock.ts';
import { buildPlan, buildUpdate, listed } from '../support/builders/plans.ts';
import { buildSignal } from '../support/builders/signals.ts';
import { recorded, statusOf } from '../support/builders/views.ts';

export const PATIENCE = { timeout: 150_000, interval: 150 };
const NODE_LEASES = 'kube-node-lease';
const NAMESPACE = 'default';
const HEARTBEAT_MS = 10_000;
const HELD = 'example.com/held';

export class Puppets implements AsyncDisposable {
  readonly names: readonly string[];
  readonly #admin: KubeClient;
  readonly #pods: string[] = [];
  /**
   * Renews the Leases of the nodes. Otherwise the controller manager treats the nodes as lost after 50 s, and on a busy
   * machine nothing starts any more.
   */
  readonly #heartbeat = setInterval(() => {
    const renewed = { spec: { renewTime: microTime(Date.now()) } };
    // A test may have deleted the Lease.
    for (const name of this.names)
      void this.#admin
        .patch(leases, name, renewed, { type: 'merge', namespace: NODE_LEASES })
        .catch(() => undefined);
  }, HEARTBEAT_MS).unref();

  private constructor(admin: KubeClient, names: readonly string[]) {
    this.#admin = admin;
    this.names = names;
  }

  /** Ready nodes that let the leader drain them. */
  static async create(admin: KubeClient, ...names: readonly string[]): Promise<Puppets> {
    for (const name of names) {
      await createNode(admin, name, {});
      await reportReady(admin, name, 'v1.36.3+k0s.0', '2026-11-20T08:00:00Z');
      const metadata = { name, namespace: NODE_LEASES, labels: { [CENTRAL_CORDONING_LABEL]: '' } };
      await admin.create(
        leases,
        // The controller manager ignores later renewals of a Lease that had no time when the controller manager first
        // observed it.
        { metadata, spec: { holderIdentity: name, renewTime: microTime(Date.now()) } },
        { namespace: NODE_LEASES },
      );
    }
    return new Puppets(admin, names);
  }

  /** Creates a Plan for all these nodes, in their order. Does not wait for the Plan. */
  async plan(concurrent: number, more: Partial<K0sUpdate> = {}): Promise<Plan> {
    const workers = { ...listed(...this.names), limits: { concurrent } };
    const k0supdate = buildUpdate({ targets: { workers }, ...more });
    const { metadata, ...rest } = buildPlan({ commands: [{ k0supdate }] });
    return await this.#admin.create(plans, { ...rest, metadata: { name: metadata.name } });
  }

  async node(name: string): Promise<Node> {
    return await this.#admin.get(nodes, name);
  }

  /** The node's signal with its latest status. */
  async signal(name: string): Promise<SignalData | undefined> {
    return decodeSignal((await this.node(name)).metadata.annotations);
  }

  /** The reason that the node reported for the end of the signal. */
  async reason(name: string): Promise<string | undefined> {
    const { annotations } = (await this.node(name)).metadata;
    return decodeReport(annotations, decodeSignal(annotations)?.created ?? '')?.reason;
  }

  /** Who cordoned the node. */
  async cordon(name: string): Promise<'none' | 'ours' | 'foreign'> {
    const node = await this.node(name);
    if (node.spec?.unschedulable !== true) return 'none';
    return cordonOwner(node) === undefined ? 'foreign' : 'ours';
  }

  /** Cordons the node without an owner, as a person does. */
  async cordonByHand(name: string): Promise<void> {
    await this.#admin.patch(nodes, name, { spec: { unschedulable: true } }, { type: 'merge' });
  }

  /**
   * Writes what a leader would record and signal, and what the agent would report. `before` has the recorded states of
   * the targets that come before this node.
   */
  async isAt(
    name: string,
    status: string,
    before: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const created = rfc3339(Date.now());
    const annotations = buildSignal({ created, status, timestamp: created });
    await this.#admin.patch(nodes, name, { metadata: { annotations } }, { type: 'merge' });
    const recordedAs = recorded({ ...before, [name]: 'SignalSent' }, created);
    const plan = await this.#admin.get(plans, 'autopilot');
    const record = { ...plan, status: statusOf('SchedulableWait', [], recordedAs) };
    await this.#admin.replace(plans, record, { subresource: 'status' });
  }

  /** Waits until the node has a signal, and then reports the status as its agent would. */
  async says(
    name: string,
    status: string,
    extra: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    await vi.waitFor(async () => {
      const node = await this.node(name);
      const data = decodeSignal(node.metadata.annotations);
      if (!data) throw new Error(`${name} has no signal`);
      const timestamp = rfc3339(Date.now());
      const annotations = {
        ...node.metadata.annotations,
        ...encodeSignal({ ...data, status: { status, timestamp } }),
        ...extra,
      };
      await this.#admin.replace(nodes, { ...node, metadata: { ...node.metadata, annotations } });
    }, PATIENCE);
  }

  /**
   * Adds a pod that still exists after an eviction has started its deletion. The pod ends when the test releases it or
   * disposes of the puppets. Returns the namespace and name of the pod.
   */
  async addLastingPod(name: string): Promise<string> {
    const pod = `${name}-lasting`;
    const metadata = { name: pod, namespace: NAMESPACE, finalizers: [HELD], labels: { app: pod } };
    const containers = [{ name: 'c', image: 'example.com/none' }];
    const spec = { nodeName: name, terminationGracePeriodSeconds: 0, containers };
    await this.#admin.create(pods, { metadata, spec }, { namespace: NAMESPACE });
    this.#pods.push(pod);
    const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    await this.#admin.patch(
      pods,
      pod,
      { status },
      { type: 'merge', subresource: 'status', namespace: NAMESPACE },
    );
    return `${NAMESPACE}/${pod}`;
  }

  /** Lets a pod end. `pod` is the value that `addLastingPod` returned. */
  async release(pod: string): Promise<void> {
    const [namespace = NAMESPACE, name = ''] = pod.split('/');
    const patch = { metadata: { finalizers: null } };
    await this.#admin.patch(pods, name, patch, { type: 'merge', namespace });
    this.#pods.splice(this.#pods.indexOf(name), 1);
  }

  async until(check: () => void | Promise<void>): Promise<void> {
    await vi.waitFor(async () => await check(), PATIENCE);
  }

  /** Waits until the plan has ended, and returns its final state. */
  async end(): Promise<{ state: string | undefined; description: string | undefined }> {
    const status = async (): Promise<Plan['status']> =>
      (await this.#admin.get(plans, 'autopilot')).status;
    await this.until(async () =>
      expect(['SchedulableWait', 'Schedulable', undefined]).not.toContain((await status())?.state),
    );
    const { state, commands } = (await status()) ?? {};
    return { state, description: commands?.[0]?.description };
  }

  /** Returns the states of the workers by name, as the plan records them. */
  async recorded(): Promise<Record<string, string>> {
    const { status } = await this.#admin.get(plans, 'autopilot');
    const workers = status?.commands[0]?.k0supdate?.workers ?? [];
    return Object.fromEntries(workers.map(({ name, state }) => [name, state]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#heartbeat);
    await this.#admin.delete(plans, 'autopilot').catch(() => undefined);
    const namespace = NAMESPACE;
    for (const name of this.#pods) {
      await this.#admin.patch(
        pods,
        name,
        { metadata: { finalizers: null } },
        { type: 'merge', namespace },
      );
      await this.#admin.delete(pods, name, { namespace }).catch(() => undefined);
    }
    for (const name of this.names) {
      // A test may have deleted the Node of a host that is lost.
      await ifFound(this.#admin.delete(nodes, name));
      await this.#admin.delete(leases, name, { namespace: NODE_LEASES });
    }
  }
}
