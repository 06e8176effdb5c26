/** The workload of ap-controllerworker: a pod on each node, and a budget that allows no eviction. */
import { expect, vi } from 'vitest';
import type { KubeClient } from '../../../src/kube/client.ts';
import {
  namespaces,
  nodes,
  type Pod,
  podDisruptionBudgets,
  pods,
} from '../../../src/kube/resources.ts';
import { apply } from '../control-plane.ts';
import { PATIENCE } from '../drain-stage.ts';
import { Workloads } from '../drain-workloads.ts';

const NAME = 'drain-blocker';

export class DrainBlocker implements AsyncDisposable {
  readonly #admin: KubeClient;
  readonly #namespace: string;
  readonly #names: readonly string[];

  private constructor(admin: KubeClient, namespace: string, names: readonly string[]) {
    this.#admin = admin;
    this.#namespace = namespace;
    this.#names = names;
  }

  /** Resolves when a pod runs on each node and the budget's status blocks all of them. */
  static async start(admin: KubeClient, names: readonly string[]): Promise<DrainBlocker> {
    const generated = {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: '', generateName: `${NAME}-` },
    };
    const { metadata } = await admin.create(namespaces, generated);
    const blocker = new DrainBlocker(admin, metadata.name, names);
    await blocker.#deploy();
    return blocker;
  }

  /** Resolves when a pod runs on each node. */
  async untilEverywhere(): Promise<void> {
    await vi.waitFor(async () => {
      const homes = (await this.#running()).map(({ spec }) => spec?.nodeName ?? '');
      expect(homes.toSorted()).toEqual(this.#names);
    }, PATIENCE);
  }

  /** Returns the uids of the running pods. */
  async uids(): Promise<(string | undefined)[]> {
    return (await this.#running()).map(({ metadata }) => metadata.uid);
  }

  /** Deletes the budget. The pods stay. */
  async liftBudget(): Promise<void> {
    await this.#admin.delete(podDisruptionBudgets, NAME, { namespace: this.#namespace });
  }

  /** Does not wait until the namespace is gone, because nothing else uses it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#admin.delete(namespaces, this.#namespace);
  }

  async #deploy(): Promise<void> {
    const labels = { metadata: { labels: { stage: NAME } } };
    for (const name of this.#names) await this.#admin.patch(nodes, name, labels, { type: 'merge' });
    const apart = {
      labelSelector: { matchLabels: { app: NAME } },
      topologyKey: 'kubernetes.io/hostname',
    };
    const affinity = {
      podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [apart] },
    };
    // A grace period of pods whose nodes are gone would never end.
    const spec = { affinity, terminationGracePeriodSeconds: 0 };
    const set = new Workloads(this.#namespace, NAME);
    const count = this.#names.length;
    const items = [
      set.of('Deployment', NAME, { replicas: count }, { spec }),
      set.budget(NAME, NAME, { minAvailable: count }),
    ];
    await apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    await this.untilEverywhere();
    await vi.waitFor(async () => {
      const { status } = await this.#admin.get(podDisruptionBudgets, NAME, {
        namespace: this.#namespace,
      });
      expect(status).toMatchObject({ currentHealthy: count, disruptionsAllowed: 0 });
    }, PATIENCE);
  }

  async #running(): Promise<Pod[]> {
    const { items } = await this.#admin.list(pods, { namespace: this.#namespace });
    return items.filter(
      ({ metadata, status }) => status?.phase === 'Running' && !metadata.deletionTimestamp,
    );
  }
}
