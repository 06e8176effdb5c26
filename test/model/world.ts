/** Owns the whole world of one configuration as a model to explore: plan, nodes, requests on their way, faults left. */
import type { Plan } from '../../src/api/autopilot/plan.ts';
import { phaseOfPlan } from '../../src/dialects/autopilot/states.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import type { Configuration } from './cluster.ts';
import { firstPlan, OLD, objectOf, secondPlan } from './cluster.ts';
import type { Edge, Invariant, Model } from './explorer.ts';
import type { Glance } from './glance.ts';
import { afterStep as realAfterStep } from './host.ts';
import { INVARIANTS } from './invariants.ts';
import type { Leader } from './leader.ts';
import { realLeader } from './leader.ts';
import type { LeaderMove } from './leader-moves.ts';
import { LeaderMoves } from './leader-moves.ts';
import type { NodeState } from './node-state.ts';
import { contentOf, freshNode, objectAt } from './node-state.ts';
import { Numbering, once } from './numbering.ts';
import { NodeKind, Place } from './place.ts';
import { recordedIn } from './plan-words.ts';
import { Reduction } from './reduction.ts';
import { kindOf, Symmetry } from './symmetry.ts';
import type { NodeRules } from './turn-trail.ts';
import { pack, type State, unpack } from './world-state.ts';

/** What stands in for the real thing, so that a mistake can be planted. */
export interface Parts {
  readonly leader: Leader;
  readonly afterStep: NodeRules['afterStep'];
}

const REAL: Parts = { leader: realLeader, afterStep: realAfterStep };

export class World implements Model {
  readonly initial: string;
  readonly invariants: readonly Invariant[];
  readonly #configuration: Configuration;
  readonly #contents = new Numbering<KubeObject>();
  readonly #plans = new Numbering<readonly number[]>();
  readonly #nodes = new Numbering<NodeState>();
  /** Contents on their way to one object, each for the version that it has now. */
  readonly #requests = new Numbering<readonly number[]>();
  readonly #leaders: LeaderMoves;
  readonly #places: readonly Place[];
  readonly #planGlances = new Map<number, Omit<Glance, 'nodes'>>();
  readonly #secondPlan: number | undefined;
  #glance: readonly [state: string, glance: Glance] | undefined;

  constructor(configuration: Configuration, planted: Partial<Parts> = {}) {
    const { leader, afterStep } = { ...REAL, ...planted };
    const { nodes, faults, crashesEach, mayDie } = configuration;
    this.#configuration = configuration;
    this.#leaders = new LeaderMoves(configuration, this.#contents, leader);
    const kinds = new Map<string, NodeKind>();
    this.#places = nodes.map((spec) => {
      const qualityOf: NodeRules['qualityOf'] = (file) => (file === OLD ? 'good' : spec.payload);
      const rules = { contents: this.#contents, qualityOf, mayDie, afterStep };
      return new Place(
        spec,
        once(kinds, kindOf(spec), () => new NodeKind(rules, this.#nodes)),
      );
    });
    this.invariants = INVARIANTS.map(({ name, holds }) => ({
      name,
      holds: (state) => holds(this.#look(state), configuration),
    }));
    const second = secondPlan(configuration);
    this.#secondPlan = second && contentOf(this.#contents, second);
    this.initial = pack({
      time: 0,
      plan: this.#plans.numberOf([contentOf(this.#contents, firstPlan(configuration))]),
      faults,
      nodes: nodes.map((spec) =>
        this.#nodes.numberOf(freshNode(contentOf(this.#contents, objectOf(spec)), OLD, crashesEach)),
      ),
      requests: nodes.map(() => this.#requests.numberOf([])),
    });
  }

  /** The same world, of which one state stands for all that behave alike. */
  reduced(): Model {
    const parts = { plans: this.#plans, nodes: this.#nodes, leaders: this.#leaders };
    const configuration = this.#configuration;
    const symmetry = new Symmetry(configuration, this.#contents);
    const kinds = this.#places.map(({ kind }) => kind);
    const reduction = new Reduction({ ...parts, configuration, symmetry, kinds });
    return {
      initial: this.initial,
      invariants: this.invariants,
      next: async (state) => await this.next(state),
      isFinal: (state) => this.isFinal(state),
      canonical: async (state) => pack(await reduction.canonical(unpack(state))),
    };
  }

  /** The model's clock ends: what began at its last moment has no later one in which it could be late. */
  isFinal(text: string): boolean {
    const { state, recorded } = this.#look(text);
    const { times } = this.#configuration;
    const end = times.length > 1 ? rfc3339(times.at(-1) ?? 0) : undefined;
    const isRunning = ['new', 'running'].includes(phaseOfPlan(state));
    return !isRunning || recorded.some((target) => target.state === 'SignalSent' && target.since === end);
  }

  async next(text: string): Promise<Edge[]> {
    const state = unpack(text);
    const edges = [...this.#passing(state), ...this.#deliveries(state), ...(await this.#leaderEdges(state))];
    for (const [place, node] of state.nodes.entries()) {
      const { spec, kind } = this.#placeAt(place);
      for (const { label, fair, cost, to } of await kind.edgesFrom(node)) {
        if (cost > state.faults) continue;
        edges.push({ label: `${spec.name}: ${label}`, fair, to: pack(this.#moved(state, place, to, cost)) });
      }
    }
    edges.push(...this.#foreignWrites(state));
    return edges.filter(({ to }) => to !== text);
  }

  #placeAt(place: number): Place {
    const found = this.#places[place];
    if (!found) throw new RangeError(`no node at place ${place}`);
    return found;
  }

  #passing(state: State): Edge[] {
    const { times } = this.#configuration;
    if (state.time + 1 === times.length) return [];
    return [{ label: 'hours pass', fair: true, to: pack({ ...state, time: state.time + 1 }) }];
  }

  /** Requests arrive in any order, or never; those that are late find another resourceVersion. */
  #deliveries(state: State): Edge[] {
    return this.#places.flatMap(({ spec, kind }, place) =>
      this.#requests.valueOf(state.requests[place] ?? 0).map((content) => {
        const node = kind.afterWrite(state.nodes[place] ?? 0, content);
        const label = `the API server takes the signal for ${spec.name}`;
        return { label, fair: true, to: pack(this.#moved(state, place, node, 0)) };
      }),
    );
  }

  #foreignWrites(state: State): Edge[] {
    const versions = this.#plans.valueOf(state.plan);
    const withPlan = (content = 0): number => this.#plans.numberOf([...versions, content]);
    const edges: Edge[] = [];
    if (state.faults > 0) {
      const to = pack({ ...state, plan: withPlan(versions.at(-1)), faults: state.faults - 1 });
      edges.push({ label: 'somebody else writes the plan', fair: false, to });
    }
    if (this.#secondPlan !== undefined && !versions.includes(this.#secondPlan)) {
      const to = pack({ ...state, plan: withPlan(this.#secondPlan) });
      edges.push({ label: 'the plan is deleted, and another one is applied', fair: false, to });
    }
    return edges;
  }

  async #leaderEdges(state: State): Promise<Edge[]> {
    const nodes = this.#places.map((place, index) => place.glanceAt(state.nodes[index] ?? 0));
    const moves = await this.#leaders.of({
      now: this.#configuration.times[state.time] ?? 0,
      plan: this.#plans.valueOf(state.plan),
      nodes: nodes.map(({ versions }) => versions),
      down: nodes.flatMap(({ spec, host }) =>
        spec.role === 'controller' && host.service?.life !== 'up' ? [spec.name] : [],
      ),
    });
    return moves.map((move) => ({ label: move.label, fair: move.fair, to: pack(this.#led(state, move)) }));
  }

  /** A write of the plan is decided and done in one: to decide on an older view is to decide earlier. */
  #led(state: State, { object, content }: LeaderMove): State {
    if (object === 'plan') {
      return { ...state, plan: this.#plans.numberOf([...this.#plans.valueOf(state.plan), content]) };
    }
    const known = this.#requests.valueOf(state.requests[object] ?? 0);
    const requests = [...new Set([...known, content])].toSorted((a, b) => a - b);
    return { ...state, requests: state.requests.with(object, this.#requests.numberOf(requests)) };
  }

  /** The state with another state of one node; requests that its object has overtaken can only be refused. */
  #moved(state: State, place: number, node: number, cost: number): State {
    const versionsAt = (number = 0): number => this.#nodes.valueOf(number).versions.length;
    const isOvertaken = versionsAt(node) !== versionsAt(state.nodes[place]);
    const requests = isOvertaken ? state.requests.with(place, this.#requests.numberOf([])) : state.requests;
    return { ...state, faults: state.faults - cost, nodes: state.nodes.with(place, node), requests };
  }

  /** The state in full; kept, since all predicates look at one state after the other. */
  #look(text: string): Glance {
    if (this.#glance?.[0] === text) return this.#glance[1];
    const state = unpack(text);
    const plan = once(this.#planGlances, state.plan, () => {
      const { spec, status } = objectAt(this.#contents, this.#plans.valueOf(state.plan)) as Plan;
      const versions = spec.commands.map(({ k0supdate }) => k0supdate?.version ?? '');
      return { run: spec.id, versions, state: status?.state, recorded: recordedIn(status) };
    });
    const nodes = this.#places.map((place, index) => place.glanceAt(state.nodes[index] ?? 0));
    const glance = { ...plan, nodes };
    this.#glance = [text, glance];
    return glance;
  }
}
