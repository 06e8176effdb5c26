/** Caches the results for the states of one kind of node, for all nodes of the kind. */
import { decodeSignal } from '../../src/signal/annotations.ts';
import type { NodeSpec } from './cluster.ts';
import type { NodeGlance } from './glance.ts';
import { edgesOf, type NodeEdge } from './node-moves.ts';
import { type NodeState, objectAt, written } from './node-state.ts';
import { type Numbering, once } from './numbering.ts';
import { TakenTurns } from './taken-turns.ts';
import type { NodeRules } from './turn-trail.ts';

/** Nodes that differ only in their names. */
export class NodeKind {
  readonly #rules: NodeRules;
  readonly #turns: TakenTurns;
  readonly #states: Numbering<NodeState>;
  readonly #edges = new Map<number, Promise<readonly NodeEdge[]>>();
  readonly #written = new Map<string, number>();

  constructor(rules: NodeRules, states: Numbering<NodeState>) {
    this.#rules = rules;
    this.#turns = new TakenTurns(rules);
    this.#states = states;
  }

  stateOf(state: number): NodeState {
    return this.#states.valueOf(state);
  }

  /** Returns the node in the form in which predicates receive it. */
  glanceAt(state: number, spec: NodeSpec): NodeGlance {
    const node = this.stateOf(state);
    const object = objectAt(this.#rules.contents, node.versions);
    return { ...node, spec, object, signal: decodeSignal(object.metadata.annotations) };
  }

  /**
   * Returns everything that can happen at such a node without a leader. The labels do not contain the name of the node.
   */
  async edgesFrom(state: number): Promise<readonly NodeEdge[]> {
    return await once(this.#edges, state, async () => {
      const kind = { rules: this.#rules, turns: this.#turns, states: this.#states };
      return await edgesOf(this.stateOf(state), kind);
    });
  }

  /** Returns the state after the API server has accepted a leader's write. A drain that has ended is forgotten. */
  afterWrite(state: number, content: number): number {
    return once(this.#written, `${state}/${content}`, () => {
      const { drain, ...node } = this.stateOf(state);
      const { annotations } = this.#rules.contents.valueOf(content).metadata;
      const isWanted = decodeSignal(annotations)?.status?.status === 'Cordoning';
      return this.#states.numberOf(written({ ...node, drain: isWanted ? drain : 'none' }, content));
    });
  }
}

/** One node of the configuration. */
export class Place {
  readonly spec: NodeSpec;
  readonly kind: NodeKind;
  readonly #glances = new Map<number, NodeGlance>();

  constructor(spec: NodeSpec, kind: NodeKind) {
    this.spec = spec;
    this.kind = kind;
  }

  glanceAt(state: number): NodeGlance {
    return once(this.#glances, state, () => this.kind.glanceAt(state, this.spec));
  }
}
