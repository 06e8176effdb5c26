/** The Machines of an owner as a model to explore: their Nodes, the drains of the leader, and what Cluster API asks for. */
import type { Node } from '../../../src/kube/resources.ts';
import { type Carrying, type Drained, edgesOfDeeds, withDrain, wordsForDeed } from '../deeds.ts';
import type { Edge, Invariant, Model } from '../explorer.ts';
import { once } from '../numbering.ts';
import { type Contents, ObjectStates, remembering } from '../object-states.ts';
import { invariantsOf } from '../planted-world.ts';
import { CAPI_INVARIANTS } from './capi-invariants.ts';
import { type CapiDeed, type CapiLeader, type CapiView, realCapiLeader } from './capi-leader.ts';
import {
  type CapiChange,
  type CapiScene,
  changesIn,
  type Requesting,
  realRequesting,
} from './capi-moves.ts';
import { type CapiConfiguration, nodesOf, TIMES } from './capi-objects.ts';
import {
  type CapiGlance,
  type CapiState,
  chosenAmong,
  freshPast,
  plansAmong,
  recordOn,
  type Seen,
} from './capi-state.ts';
import { judged } from './capi-writes.ts';

/** What a mistake can replace. */
export interface CapiParts {
  readonly leader?: CapiLeader;
  readonly requesting?: Requesting;
}

export class CapiWorld implements Model {
  readonly initial: string;
  readonly invariants: readonly Invariant[];
  readonly invariantsAtRest: readonly Invariant[];
  readonly #configuration: CapiConfiguration;
  readonly #leader: CapiLeader;
  readonly #requesting: Requesting;
  readonly #states = new ObjectStates<CapiState>();
  readonly #deeds = new Map<string, Promise<readonly CapiDeed[]>>();
  readonly #glances = new Map<string, CapiGlance>();
  readonly #carrying: Carrying<CapiState, CapiDeed> = {
    after: (state, deed) => this.#afterDeed(state, deed),
    wordsFor: wordsForDeed,
    textOf: (state) => this.#states.textOf(state),
  };

  constructor(
    configuration: CapiConfiguration,
    { leader = realCapiLeader, requesting = realRequesting }: CapiParts = {},
  ) {
    this.#configuration = configuration;
    this.#leader = leader;
    this.#requesting = requesting;
    this.initial = this.#states.textOf({
      time: 0,
      objects: this.#states.contentsOf(nodesOf(configuration)),
      seen: undefined,
      drains: {},
      isApproved: false,
      pause: 'none',
      gone: [],
      isFirstGone: false,
      requests: 0,
      moves: configuration.moves,
      past: Object.keys(configuration.nodes).map(freshPast),
      broken: [],
    });
    const asked = invariantsOf(CAPI_INVARIANTS, (text) => this.#glance(text), configuration);
    this.invariants = asked.invariants;
    this.invariantsAtRest = asked.invariantsAtRest;
  }

  /** Reports whether all chosen Machines are done or failed, or whether a failure has ended the plan. */
  isFinal(text: string): boolean {
    const nodes = [...this.#glance(text).nodes.values()];
    const states = chosenAmong(nodes).map((node) => recordOn(node)?.state);
    if (states.every((state) => state === 'done' || state === 'failed')) return true;
    const records = plansAmong(nodes).map(recordOn);
    const hasFailed = records.some((record) => record?.failed !== undefined);
    return (
      (hasFailed || states.includes('failed')) && records.every((each) => each?.phase === 'failed')
    );
  }

  async next(text: string): Promise<Edge[]> {
    const state = this.#states.stateOf(text);
    const scene = this.#sceneOf(state);
    const changes = changesIn(scene, this.#requesting).map((change) => this.#edge(state, change));
    const edges = [...changes, ...(await this.#leaderEdges(state))];
    return edges.filter(({ to }) => to !== text);
  }

  /** Besides a leader that sees the newest Nodes there may be one whose watch shows old Nodes. */
  async #leaderEdges(state: CapiState): Promise<Edge[]> {
    const fresh = await this.#deedsSeeing(
      state,
      { nodes: state.objects, changed: [] },
      state.drains,
    );
    const edges = [...fresh].flatMap(([name, deeds]) => this.#freshEdges(state, name, deeds));
    if (state.seen === undefined) return edges;
    const late = await this.#deedsSeeing(state, state.seen, {});
    const lateEdges = [...late.values()].flatMap((deeds) =>
      // Its process has drains of its own.
      edgesOfDeeds(
        this.#carrying,
        state,
        deeds.filter(({ kind }) => kind === 'write'),
        'a leader that sees old Nodes',
      ),
    );
    return [...edges, ...lateEdges.map((edge) => ({ ...edge, fair: false }))];
  }

  /** Once a leader has reconciled the plan completely, a pause is on all its Nodes. */
  #freshEdges(state: CapiState, name: string, deeds: readonly CapiDeed[]): Edge[] {
    const edges = edgesOfDeeds(this.#carrying, state, deeds);
    const leads = plansAmong(this.#nodesIn(state.objects).values());
    if (state.pause !== 'said' || leads.every(({ metadata }) => metadata.name !== name))
      return edges;
    const copied = deeds.reduce((before, deed) => this.#afterDeed(before, deed), state);
    const to = this.#states.textOf({ ...copied, pause: 'kept' });
    const label = edges.at(-1)?.label ?? 'a leader sees the pause';
    return [...edges.slice(0, -1), { label, fair: true, to }];
  }

  /** Returns what the leader does for each Node. */
  async #deedsSeeing(
    state: CapiState,
    seen: Seen,
    drains: Drained,
  ): Promise<ReadonlyMap<string, readonly CapiDeed[]>> {
    const view = this.#viewOf(state, seen, drains);
    const key = JSON.stringify([state.time, state.objects, seen, drains, state.isApproved]);
    const all = new Map<string, readonly CapiDeed[]>();
    for (const name of new Set([...view.seen.keys(), ...view.current.keys()])) {
      const decide = async () => await this.#leader(view, name);
      all.set(name, await once(this.#deeds, `${key} ${name}`, decide));
    }
    return all;
  }

  #afterDeed(state: CapiState, deed: CapiDeed): CapiState {
    if (deed.kind === 'drain') return { ...state, drains: withDrain(state.drains, deed) };
    const name = deed.key.replace('nodes/', '');
    const { nodes } = this.#sceneOf(state);
    const before = nodes.get(name);
    if (!before || !deed.object) throw new RangeError(`a leader deletes or creates ${deed.key}`);
    const after: Node = deed.object;
    const configuration = this.#configuration;
    return this.#withNode(judged(state, { configuration, nodes, before, after }), after);
  }

  #edge(state: CapiState, { label, fair, node, deleted, state: more, past }: CapiChange): Edge {
    let after = { ...state, ...more };
    if (node) after = this.#withNode(after, node);
    if (deleted !== undefined) {
      after = this.#states.withObject(after, deleted, undefined);
      after = { ...after, past: after.past.filter(({ name }) => name !== deleted) };
    }
    return { label, fair, to: this.#states.textOf(past ? remembering(after, past) : after) };
  }

  #withNode(state: CapiState, node: Node): CapiState {
    const { name } = node.metadata;
    const after = this.#states.withObject(state, name, node);
    const { seen } = after;
    if (!seen) return after;
    const changed = [...new Set([...seen.changed, name])].toSorted();
    return { ...after, seen: { ...seen, changed } };
  }

  #sceneOf(state: CapiState): CapiScene {
    return {
      configuration: this.#configuration,
      state,
      nodes: this.#nodesIn(state.objects),
      now: TIMES[state.time] ?? 0,
    };
  }

  #viewOf(state: CapiState, seen: Seen, drains: Drained): CapiView {
    const { configuration, nodes: current, now } = this.#sceneOf(state);
    const { isApproved } = state;
    return {
      configuration,
      now,
      current,
      seen: this.#nodesIn(seen.nodes),
      changed: seen.changed,
      drains: new Map(Object.entries(drains)),
      isApproved,
    };
  }

  #nodesIn(contents: Contents): Map<string, Node> {
    return this.#states.objectsIn(contents);
  }

  #glance(text: string): CapiGlance {
    return once(this.#glances, text, () => {
      const { objects, past, broken } = this.#states.stateOf(text);
      return { nodes: this.#nodesIn(objects), past, broken };
    });
  }
}
