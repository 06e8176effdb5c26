/** Owns the workload of ap-controllerworker: a pod on every node, and a budget that lets none of them go. */
import { expect, vi } from 'vitest';
import { nodes, podDisruptionBudgets } from '../../../src/kube/resources.ts';
import type { Pod } from '../../../src/kube/types.ts';
import { apply } from '../control-plane.ts';
import { PATIENCE, Stage } from '../drain-stage.ts';
import { Workloads } from '../drain-workloads.ts';

const NAME = 'drain-blocker';

export class DrainBlocker implements AsyncDisposable {
  readonly #stage: Stage;
  readonly #names: readonly string[];

  private constructor(stage: Stage, names: readonly string[]) {
    this.#stage = stage;
    this.#names = names;
  }

  /** Resolves once a pod runs on each of the nodes, and the budget is known to hold them all. */
  static async start(names: readonly string[]): Promise<DrainBlocker> {
    const stage = await Stage.open('ap-controllerworker');
    for (const name of names)
      await stage.admin.patch(nodes, name, { metadata: { labels: { stage: NAME } } }, { type: 'merge' });
    const apart = { labelSelector: { matchLabels: { app: NAME } }, topologyKey: 'kubernetes.io/hostname' };
    const spec = { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [apart] } } };
    const set = new Workloads(stage.namespace, NAME);
    const items = [
      set.of('Deployment', NAME, { replicas: names.length }, { spec }),
      set.budget(NAME, NAME, { minAvailable: names.length }),
    ];
    await apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    const blocker = new DrainBlocker(stage, names);
    await blocker.untilEverywhere();
    await vi.waitFor(async () => {
      const { status } = await stage.admin.get(podDisruptionBudgets, NAME, { namespace: stage.namespace });
      expect(status).toMatchObject({ currentHealthy: names.length, disruptionsAllowed: 0 });
    }, PATIENCE);
    return blocker;
  }

  /** Resolves once a pod runs on each of the nodes. */
  async untilEverywhere(): Promise<void> {
    await vi.waitFor(async () => {
      const homes = (await this.#running()).map(({ spec }) => spec?.nodeName ?? '');
      expect(homes.toSorted()).toEqual(this.#names);
    }, PATIENCE);
  }

  /** Of the pods that run. */
  async uids(): Promise<(string | undefined)[]> {
    return (await this.#running()).map(({ metadata }) => metadata.uid);
  }

  /** The pods stay. */
  async liftBudget(): Promise<void> {
    await this.#stage.admin.delete(podDisruptionBudgets, NAME, { namespace: this.#stage.namespace });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stage.close();
  }

  async #running(): Promise<Pod[]> {
    const onEach = await Promise.all(this.#names.map(async (name) => await this.#stage.running(name)));
    return onEach.flat().filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }
}
