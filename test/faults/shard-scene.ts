/**
 * A small plan that is too large for one object. Its leaders die between any two requests. Every write is checked, at
 * the moment at which the server accepts it, against the invariants that must hold in spite of dead leaders and stale
 * views.
 */

import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { statusShards } from '../../src/api/refit/status-shard.ts';
import { autopilot } from '../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import type { Dialect } from '../../src/engine/contract/dialect.ts';
import type { RecordSharding } from '../../src/engine/contract/features.ts';
import { createReconciler } from '../../src/engine/loop.ts';
import { DEFAULT_POLICY } from '../../src/engine/policy/rollout-policy.ts';
import { viewsOf } from '../../src/engine/snapshot/world.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { type KubeObject, nodes, type Resource } from '../../src/kube/resources.ts';
import { decodeSignal, encodeSignal } from '../../src/signal/annotations.ts';
import { controlNodes } from '../../src/signal/names.ts';
import { knowledgeOf } from '../support/builders/knowledge.ts';
import { type LaggingView, MemoryApi } from '../support/builders/memory-api.ts';
import { buildControlNode, buildNode } from '../support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../support/builders/plans.ts';
import { FakeClock } from '../support/clock/fake-clock.ts';
import { later, T0 } from '../support/clock/times.ts';

export const WORKERS = ['w1', 'w2', 'w3', 'w4', 'w5'];
export const CONCURRENT = 2;
const KINDS: readonly Resource[] = [plans, controlNodes, nodes, statusShards];

/** The moment at which a leader dies: before it sends the request with this number, or after the server has done it. */
export interface Death {
  readonly request: number;
  readonly moment: 'before' | 'after';
}

class Died extends Error {}

/**
 * A leader with views of its own. A view contains the objects of one kind as they were when the view was last updated.
 */
interface Leader {
  readonly views: ReadonlyMap<Resource, LaggingView<KubeObject>>;
  reconcile(): Promise<unknown>;
}

export class ShardScene {
  readonly api = new MemoryApi();
  /** Requests of the leaders so far. */
  requests = 0;
  /** Descriptions of the violated invariants; empty if no invariant was violated. */
  readonly wrongs = new Set<string>();
  readonly #clock = new FakeClock(T0);
  readonly #dialect: Dialect<Plan>;
  readonly #signalled = new Map<string, number>();
  readonly #settled = new Set<string>();

  constructor(shards: RecordSharding<Plan> | undefined) {
    this.#dialect = {
      ...autopilot,
      ...(shards ? { sharding: shards } : {}),
    };
    this.api.put(controlNodes, buildControlNode('c1'));
    for (const name of WORKERS) this.api.put(nodes, buildNode(name));
    const workers = { ...listed(...WORKERS), limits: { concurrent: CONCURRENT } };
    const update = buildUpdate({ targets: { controllers: listed('c1'), workers } });
    this.api.put(plans, buildPlan({ commands: [{ k0supdate: update }] }));
  }

  leader(death?: Death): Leader {
    const views = new Map(KINDS.map((resource) => [resource, this.api.view(resource)]));
    const reconcile = createReconciler({
      dialect: this.#dialect,
      client: this.#mortal(death),
      plans: views.get(plans) as LaggingView<Plan>,
      ...knowledgeOf(viewsOf(views)),
      policyFor: () => DEFAULT_POLICY,
      clock: this.#clock,
      prober: {
        askControlPlane: async (all) =>
          await Promise.resolve(all.map(({ name }) => ({ name, ready: true }))),
      },
    });
    return { views, reconcile: async () => await reconcile('autopilot') };
  }

  /**
   * Runs turns of a leader with current views, until the leader dies or the plan is over. All agents answer after each
   * turn.
   */
  async run(leader: Leader): Promise<'died' | 'over'> {
    for (let turn = 0; turn < 40; turn++) {
      for (const view of leader.views.values()) view.catchUp();
      if ((await this.turn(leader)) === 'died') return 'died';
      if (this.api.read(plans, 'autopilot').status?.state === 'Completed') return 'over';
    }
    throw new Error(
      `the plan does not end: ${JSON.stringify(this.api.read(plans, 'autopilot').status)}`,
    );
  }

  /** Runs one reconciliation with the present views of the leader. */
  async turn(leader: Leader): Promise<'died' | 'lives'> {
    await this.#clock.advance(1000);
    try {
      await leader.reconcile();
    } catch (error) {
      if (error instanceof Died) return 'died';
      throw error;
    }
    this.#agentsAnswer();
    return 'lives';
  }

  /** Returns a client that fails from the leader's death on. Later requests do not reach the server. */
  #mortal(death: Death | undefined): KubeClient {
    const { client } = this.api;
    let own = 0;
    const call = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
      const isDue = death?.request === ++own;
      if (death && (own > death.request || (isDue && death.moment === 'before'))) throw new Died();
      this.requests++;
      const answer = await work();
      this.#check(what);
      if (isDue) throw new Died();
      return answer;
    };
    const mortal: Pick<KubeClient, 'get' | 'create' | 'replace' | 'raw'> = {
      // The server serves none of the kinds that a version may have removed.
      raw: async () =>
        await call('raw', async () => await Promise.resolve({ status: 404, body: '' })),
      get: async (resource, name, options) =>
        await call('get', async () => await client.get(resource, name, options)),
      create: async (resource, object) =>
        await call('create', async () => await client.create(resource, object)),
      replace: async (resource, object, options) =>
        await call(
          `${resource.plural}/${object.metadata.name}`,
          async () => await client.replace(resource, object, options),
        ),
    };
    return mortal as KubeClient;
  }

  #agentsAnswer(): void {
    for (const [resource, name] of this.#objects()) {
      const signal = decodeSignal(this.api.read(resource, name).metadata.annotations);
      if (!signal || signal.status) continue;
      const done = encodeSignal({
        ...signal,
        status: { status: 'Completed', timestamp: later(0) },
      });
      this.api.change(resource, name, (object: KubeObject) => ({
        ...object,
        metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, ...done } },
      }));
    }
  }

  #objects(): [Resource, string][] {
    return [[controlNodes, 'c1'], ...WORKERS.map((name): [Resource, string] => [nodes, name])];
  }

  #check(write: string): void {
    const intended = this.#listed('SignalSent');
    if (intended.filter((name) => name !== 'c1').length > CONCURRENT)
      this.wrongs.add('more intended than may be');
    const open = this.#objects().filter(([resource, name]) => {
      const signal = decodeSignal(this.api.read(resource, name).metadata.annotations);
      return signal !== undefined && !signal.status;
    });
    for (const [, name] of open)
      if (!intended.includes(name)) this.wrongs.add('a signal without its intent');
    if (write.startsWith('nodes/'))
      this.#signalled.set(write, (this.#signalled.get(write) ?? 0) + 1);
    if ([...this.#signalled.values()].some((count) => count > 1))
      this.wrongs.add('a second signal');
    if (intended.some((name) => this.#settled.has(name)))
      this.wrongs.add('a start of what was done');
    for (const name of this.#done()) if (!intended.includes(name)) this.#settled.add(name);
  }

  #listed(state: string): string[] {
    const commands = this.api.read(plans, 'autopilot').status?.commands ?? [];
    return commands.flatMap(({ k0supdate: { controllers = [], workers = [] } = {} }) =>
      [...controllers, ...workers].filter((entry) => entry.state === state).map(({ name }) => name),
    );
  }

  /** The names of the targets that the status shards report as done. */
  #done(): string[] {
    const view = this.api.view(statusShards);
    view.catchUp();
    return view.list().flatMap(({ settled = [] }) => settled.flatMap(({ targets }) => targets));
  }
}
