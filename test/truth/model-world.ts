/**
 * The world of the model with what a leader tells: the NodeRollout is an object of it. The leader writes the NodeRollout
 * as soon as it has nothing else to do, so no state is added that differs only in an outdated NodeRollout.
 */
import type { NodeRollout } from '../../src/api/refit/node-rollout.ts';
import type { Configuration } from '../model/cluster.ts';
import type { Edge, Model } from '../model/explorer.ts';
import { Numbering } from '../model/numbering.ts';
import { begun, runIdOf } from '../model/ways-back.ts';
import { type Seen, World } from '../model/world.ts';
import { nodeRolloutIn, REAL_SURFACES, type Surfaces } from './model-renderer.ts';

/** What remains of the path to a state. */
export interface Memory {
  /** The NodeRollout as it was written last; undefined as long as there is none. */
  readonly nodeRollout?: NodeRollout | undefined;
  /** The runs that leaders have admitted, as `<uid of the plan>/<id>`: no surface may read them. */
  readonly admitted: readonly string[];
}

/** The number of characters of a state after the state of the world. */
const MEMORY_LENGTH = 2;

export class ToldWorld implements Model {
  readonly initial: string;
  /** The invariants of what is done hold for runs of an unedited plan. Other configurations check them. */
  readonly invariants = [];
  readonly #configuration: Configuration;
  readonly #surfaces: Surfaces;
  readonly #world: World;
  readonly #memories = new Numbering<Memory>();
  readonly #written = new Map<string, NodeRollout | undefined>();

  constructor(configuration: Configuration, surfaces: Surfaces = REAL_SURFACES) {
    this.#configuration = configuration;
    this.#surfaces = surfaces;
    this.#world = new World(configuration);
    const first = this.#world.seen(this.#world.initial);
    // The leader of a run that was admitted before the first state has also written its NodeRollout.
    const memory =
      first.plan.status === undefined
        ? { admitted: [] }
        : { admitted: [runOf(first.plan)], nodeRollout: this.#writtenIn(first, undefined) };
    this.initial = this.#with(this.#world.initial, memory);
  }

  /** Nothing has to happen: people may stop anywhere, and the invariants of what is told hold in each state. */
  isFinal(): boolean {
    return true;
  }

  seen(state: string): Seen {
    return this.#world.seen(state.slice(0, -MEMORY_LENGTH));
  }

  memoryOf(state: string): Memory {
    const high = state.charCodeAt(state.length - MEMORY_LENGTH);
    const low = state.charCodeAt(state.length - 1);
    return this.#memories.valueOf(high * 0x1_00_00 + low);
  }

  async next(state: string): Promise<Edge[]> {
    const inner = state.slice(0, -MEMORY_LENGTH);
    const memory = this.memoryOf(state);
    const before = this.#world.seen(inner);
    const edges = await this.#world.next(inner);
    return edges.map(({ to, ...edge }) => ({
      ...edge,
      to: this.#with(to, this.#after(before, to, memory)),
    }));
  }

  #after(before: Seen, to: string, { nodeRollout, admitted }: Memory): Memory {
    const after = this.#world.seen(to);
    const isAdmission =
      begun(before.plan).status === undefined && begun(after.plan).status !== undefined;
    const run = runOf(after.plan);
    return {
      nodeRollout: this.#writtenIn(after, nodeRollout),
      admitted: isAdmission && !admitted.includes(run) ? [...admitted, run] : admitted,
    };
  }

  #writtenIn(seen: Seen, previous: NodeRollout | undefined): NodeRollout | undefined {
    const key = JSON.stringify([factsIn(seen), previous]);
    if (this.#written.has(key)) return this.#written.get(key);
    const status = nodeRolloutIn(seen, this.#configuration, this.#surfaces, previous);
    const written = status === undefined ? previous : withStatus(seen, status);
    this.#written.set(key, written);
    return written;
  }

  #with(state: string, memory: Memory): string {
    const number = this.#memories.numberOf(memory);
    return state + String.fromCharCode(number >>> 16, number & 0xffff);
  }
}

/** Returns everything in the state that a surface may read, to compare states. */
export function factsIn({ now, contents, glance }: Seen): readonly unknown[] {
  const nodes = glance.nodes.map(({ hookJobs, drain, spec, host }) => [
    hookJobs,
    drain,
    spec.role === 'controller' && host.service?.life === 'up',
  ]);
  return [now, contents, nodes];
}

function runOf(plan: Seen['plan']): string {
  return `${plan.metadata.uid}/${runIdOf(plan)}`;
}

function withStatus({ plan }: Seen, status: NonNullable<NodeRollout['status']>): NodeRollout {
  const { name, uid = '' } = plan.metadata;
  return {
    metadata: { name: 'any', generation: 1 },
    spec: { plan: { apiVersion: plan.apiVersion ?? '', kind: 'Plan', name, uid } },
    status,
  };
}
