/** Owns one node's place in the world: everything that is known of its states, each found out once. */
import { decodeSignal } from '../../src/signal/codec.ts';
import type { NodeSpec } from './cluster.ts';
import type { NodeGlance } from './glance.ts';
import { movesOf } from './node-moves.ts';
import type { NodeState } from './node-state.ts';
import { objectAt, written } from './node-state.ts';
import { type Numbering, once } from './numbering.ts';
import type { NodeRules } from './turn-trail.ts';

/** Like a NodeMove, with the number of the state that it leads to. */
export interface NodeEdge {
  readonly label: string;
  readonly fair: boolean;
  readonly cost: number;
  readonly to: number;
}

export class Place {
  readonly spec: NodeSpec;
  readonly #rules: NodeRules;
  readonly #states: Numbering<NodeState>;
  readonly #glances = new Map<number, NodeGlance>();
  readonly #edges = new Map<number, Promise<readonly NodeEdge[]>>();
  readonly #written = new Map<string, number>();

  constructor(spec: NodeSpec, rules: NodeRules, states: Numbering<NodeState>) {
    this.spec = spec;
    this.#rules = rules;
    this.#states = states;
  }

  glanceAt(state: number): NodeGlance {
    return once(this.#glances, state, () => {
      const node = this.#states.valueOf(state);
      const object = objectAt(this.#rules.contents, node.versions);
      const signal = decodeSignal(object.metadata.annotations);
      return { ...node, spec: this.spec, object, signal };
    });
  }

  /** Everything that can happen at this node by itself. */
  async edgesFrom(state: number): Promise<readonly NodeEdge[]> {
    return await once(this.#edges, state, async () => {
      const moves = await movesOf(this.#states.valueOf(state), this.#rules);
      return moves.map(({ label, fair, cost, to }) => {
        return { label: `${this.spec.name}: ${label}`, fair, cost, to: this.#states.numberOf(to) };
      });
    });
  }

  /** The state once the API server has taken a write of this content. */
  afterWrite(state: number, content: number): number {
    return once(this.#written, `${state}/${content}`, () =>
      this.#states.numberOf(written(this.#states.valueOf(state), content)),
    );
  }
}
