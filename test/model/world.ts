/** The whole world of one configuration, as a model to explore: plan, nodes, requests in flight, faults left. */
import { placeToFetch as realPlaceToFetch } from '../../src/agent/download/fetch-ahead.ts';
import type { Plan } from '../../src/api/autopilot/plan.ts';
import { phaseOfPlan } from '../../src/dialects/autopilot/plan/states.ts';
import { controlsOn as readControls } from '../../src/engine/model/controls.ts';
import { rolledBackBy } from '../../src/engine/model/earlier-versions.ts';
import type { KubeObject } from '../../src/kube/resources.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import type { Configuration, NodeSpec } from './cluster.ts';
import {
  firstPlan,
  isOfLastCommand,
  maySeeWayBack,
  objectOf,
  qualityOn,
  secondPlan,
  tellsVersions,
  versionAtFirst,
} from './cluster.ts';
import type { Edge, Invariant, Model } from './explorer.ts';
import { isAtTurningPoint } from './forward-phases.ts';
import type { Glance } from './glance.ts';
import { withJob } from './hook-runs.ts';
import { afterStep as realAfterStep } from './host.ts';
import { INVARIANTS } from './invariants.ts';
import type { Leader } from './leader.ts';
import { realLeader } from './leader.ts';
import type { LeaderMove } from './leader-moves.ts';
import { LeaderMoves } from './leader-moves.ts';
import { named } from './nameless.ts';
import { changesOf } from './node-changes.ts';
import { isUnsettled } from './node-predicates.ts';
import type { NodeState } from './node-state.ts';
import { contentOf, freshNode, objectAt } from './node-state.ts';
import { Numbering, once } from './numbering.ts';
import { controlsOn, isApproved as isApprovedIn } from './people.ts';
import { NodeKind, Place } from './place.ts';
import { recordedIn } from './plan-words.ts';
import { waitsForPerson } from './policy-invariants.ts';
import { Reduction } from './reduction.ts';
import type { StatedInvariant } from './stated-invariant.ts';
import { kindOf, Symmetry } from './symmetry.ts';
import { ownAgentFacts as realOwnAgentFacts } from './their-agent.ts';
import type { NodeRules } from './turn-trail.ts';
import { begun, runIdOf, wayBackOf } from './ways-back.ts';
import { pack, type State, unpack } from './world-state.ts';

/** Replacements for the real functions, so that a mistake can be planted. */
export interface Parts extends Pick<NodeRules, 'afterStep' | 'ownAgentFacts' | 'placeToFetch'> {
  readonly leader: Leader;
}

const REAL: Parts = {
  leader: realLeader,
  afterStep: realAfterStep,
  ownAgentFacts: realOwnAgentFacts,
  placeToFetch: realPlaceToFetch,
};

/** What is visible in a state, and its truth. */
export interface Seen {
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** The plan as it is on the API server. */
  readonly plan: Plan;
  /** The numbers of the newest contents: of the plan, and of the object of each node. Equal objects have equal numbers. */
  readonly contents: readonly number[];
  readonly glance: Glance;
}

export class World implements Model {
  readonly initial: string;
  readonly invariants: readonly Invariant[];
  readonly invariantsAtRest: readonly Invariant[];
  readonly #configuration: Configuration;
  readonly #contents = new Numbering<KubeObject>();
  readonly #plans = new Numbering<readonly number[]>();
  readonly #nodes = new Numbering<NodeState>();
  /** Contents in flight to one object. Each request requires the present version of the object. */
  readonly #requests = new Numbering<readonly number[]>();
  readonly #leaders: LeaderMoves;
  readonly #places: readonly Place[];
  readonly #planGlances = new Map<number, Omit<Glance, 'nodes'>>();
  readonly #secondPlan: number | undefined;
  #glance: readonly [state: string, glance: Glance] | undefined;

  constructor(configuration: Configuration, planted: Partial<Parts> = {}) {
    const { leader, ...agents } = { ...REAL, ...planted };
    const { nodes, faults, power, cordoner, othersCordon, controls } = configuration;
    const { fetchesAhead, theirs, ownAgent } = configuration;
    this.#configuration = configuration;
    this.#leaders = new LeaderMoves(configuration, this.#contents, leader);
    const kinds = new Map<string, NodeKind>();
    this.#places = nodes.map((spec) => {
      const qualityOf: NodeRules['qualityOf'] = (file) => qualityOn(spec, configuration, file);
      const isLast: NodeRules['isLast'] = (file) => isOfLastCommand(configuration, file);
      const isNode = spec.role === 'worker';
      const podsReturn = isNode && controls.includes('retry');
      const limits = {
        isNode,
        faults,
        power,
        cordoner,
        othersCordon,
        fetchesAhead,
        podsReturn,
        tellsVersion: tellsVersions(configuration),
        theirs,
        ownAgent,
      };
      const rules = { contents: this.#contents, qualityOf, isLast, ...agents, ...limits };
      return new Place(
        spec,
        once(kinds, kindOf(spec), () => new NodeKind(rules, this.#nodes)),
      );
    });
    const asked = ({ name, holds }: StatedInvariant): Invariant => ({
      name,
      holds: (state) => holds(this.#look(state), configuration),
    });
    this.invariants = INVARIANTS.filter(({ atRest }) => atRest !== true).map(asked);
    this.invariantsAtRest = INVARIANTS.filter(({ atRest }) => atRest === true).map(
      ({ name, holds }) => ({
        name,
        holds: (state) => this.#isRunning(state) || holds(this.#look(state), configuration),
      }),
    );
    const second = secondPlan(configuration);
    this.#secondPlan = second && contentOf(this.#contents, second);
    this.initial = pack({
      time: 0,
      plan: this.#plans.numberOf([contentOf(this.#contents, firstPlan(configuration))]),
      faults,
      nodes: nodes.map((spec) => this.#nodes.numberOf(this.#begin(spec))),
      requests: nodes.map(() => this.#requests.numberOf([])),
    });
  }

  /**
   * Returns the smallest model with the same results. If the reduction is not valid for the configuration, the model
   * contains all states.
   */
  model(): Model {
    const { versions, replacedBy } = this.#configuration;
    const isOneRun =
      versions.length === 1 && replacedBy.length === 0 && !maySeeWayBack(this.#configuration);
    return isOneRun ? this.reduced() : this;
  }

  /** Returns the same world as a model in which one state represents all states that behave alike. */
  reduced(): Model {
    const parts = { plans: this.#plans, nodes: this.#nodes, leaders: this.#leaders };
    const configuration = this.#configuration;
    const symmetry = new Symmetry(configuration, this.#contents);
    const kinds = this.#places.map(({ kind }) => kind);
    const reduction = new Reduction({ ...parts, configuration, symmetry, kinds });
    return {
      initial: this.initial,
      invariants: this.invariants,
      invariantsAtRest: this.invariantsAtRest,
      next: async (state) => await this.next(state),
      isFinal: (state) => this.isFinal(state),
      canonical: async (state) => pack(await reduction.canonical(unpack(state))),
    };
  }

  /**
   * Reports whether nothing has to happen any more. The model's clock has a last moment. A target that began at that
   * moment can't exceed its deadline, because there is no later moment. A node that may not be at rest holds its slot
   * for hours. Both cases count as final.
   */
  isFinal(text: string): boolean {
    const { recorded, nodes } = this.#look(text);
    const { times, rules } = this.#configuration;
    // A target that failed at the last moment has no later moment for its next attempt.
    const isUnderWay = (state: string): boolean =>
      state === 'SignalSent' || (state === 'SignalApplyFailed' && rules.retry !== undefined);
    const end = times.length > 1 ? rfc3339(times.at(-1) ?? 0) : undefined;
    const isHeld =
      end === undefined && this.#configuration.maxFailures > 0 && nodes.some(isUnsettled);
    return (
      !this.#isRunning(text) ||
      isHeld ||
      waitsForPerson(this.#look(text), this.#configuration) ||
      recorded.some(({ state, since }) => end !== undefined && since >= end && isUnderWay(state))
    );
  }

  #isRunning(text: string): boolean {
    return ['new', 'running'].includes(phaseOfPlan(this.#look(text).state));
  }

  async next(text: string): Promise<Edge[]> {
    const state = unpack(text);
    const edges = [
      ...this.#passing(state),
      ...this.#deliveries(state),
      ...(await this.#leaderEdges(state)),
    ];
    for (const [place, node] of state.nodes.entries()) {
      const { spec, kind } = this.#placeAt(place);
      for (const { label, fair, cost, to } of await kind.edgesFrom(node)) {
        if (cost > state.faults) continue;
        edges.push({
          label: `${spec.name}: ${label}`,
          fair,
          to: pack(this.#moved(state, place, to, cost)),
        });
      }
    }
    edges.push(...this.#writesOfPeople(state), ...this.#changesOfNodes(state));
    const decisions = this.#decisionsOfPeople(state);
    if (!this.#isBeforeTurn(text)) return [...edges, ...decisions].filter(({ to }) => to !== text);
    const straight = edges.filter(({ fair }) => fair);
    const turns = this.#isAtTurningPoint(state) ? decisions : [];
    return [...straight, ...turns].filter(({ to }) => to !== text);
  }

  /** Returns everything that surfaces may read in the state, and the glance, which has what no surface may read. */
  seen(text: string): Seen {
    const { time, plan } = unpack(text);
    const glance = this.#look(text);
    return {
      now: this.#configuration.times[time] ?? 0,
      plan: objectAt(this.#contents, this.#plans.valueOf(plan)) as Plan,
      contents: [this.#plans.valueOf(plan), ...glance.nodes.map(({ versions }) => versions)].map(
        (versions) => versions.at(-1) ?? 0,
      ),
      glance,
    };
  }

  /** Reports whether the roll-back plan has replaced the plan. */
  isOnWayBack(text: string): boolean {
    return this.#look(text).rollsBack !== undefined;
  }

  /** Reports whether only fair edges are explored. This is the case until a person rolls the plan back. */
  #isBeforeTurn(text: string): boolean {
    if (this.#configuration.turnsBack === undefined) return false;
    const { rollsBack, isAborted } = this.#look(text);
    return rollsBack === undefined && !isAborted;
  }

  #isAtTurningPoint(state: State): boolean {
    const asked = this.#places.filter((_, place) => {
      const requests = state.requests[place] ?? 0;
      return this.#requests.valueOf(requests).length > 0;
    });
    const names = new Set(asked.map(({ spec }) => spec.name));
    return isAtTurningPoint(this.#configuration, this.#look(pack(state)), names);
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

  /**
   * Requests arrive in any order, or never. The API server refuses a late request, because the resourceVersion has
   * changed.
   */
  #deliveries(state: State): Edge[] {
    return this.#places.flatMap(({ spec, kind }, place) =>
      this.#requests.valueOf(state.requests[place] ?? 0).map((content) => {
        const node = kind.afterWrite(state.nodes[place] ?? 0, content);
        const label = `the API server takes a write of ${spec.name}`;
        return { label, fair: true, to: pack(this.#moved(state, place, node, 0)) };
      }),
    );
  }

  #writesOfPeople(state: State): Edge[] {
    const versions = this.#plans.valueOf(state.plan);
    const withPlan = (content = 0): number => this.#plans.numberOf([...versions, content]);
    const edges: Edge[] = [];
    if (state.faults > 0) {
      const to = pack({ ...state, plan: withPlan(versions.at(-1)), faults: state.faults - 1 });
      edges.push({ label: 'somebody else writes the plan', fair: false, to });
    }
    if (this.#secondPlan !== undefined && !versions.includes(this.#secondPlan)) {
      const to = pack({
        ...state,
        plan: withPlan(this.#secondPlan),
        requests: this.#requestsLeft(state),
      });
      edges.push({ label: 'the plan is deleted, and another one is applied', fair: false, to });
    }
    return edges;
  }

  /** Returns the orders that people may give, and the replacement of the plan by its roll-back plan. */
  #decisionsOfPeople(state: State): Edge[] {
    const versions = this.#plans.valueOf(state.plan);
    const withPlan = (content: number): number => this.#plans.numberOf([...versions, content]);
    const edges: Edge[] = [];
    const plan = objectAt(this.#contents, versions) as Plan;
    const back = this.#wayBack(state, plan);
    if (back) {
      const to = pack({
        ...state,
        plan: withPlan(contentOf(this.#contents, back)),
        requests: this.#requestsLeft(state),
      });
      edges.push({ label: 'somebody puts the way back in the place of the plan', fair: false, to });
    }
    const now = this.#configuration.times[state.time] ?? 0;
    for (const { label, fair, plan: ordered } of controlsOn(
      plan,
      this.#configuration.controls,
      now,
    )) {
      const to = pack({ ...state, plan: withPlan(contentOf(this.#contents, ordered)) });
      edges.push({ label, fair, to });
    }
    return edges;
  }

  /**
   * Returns the plan that rolls the present plan back; undefined if the configuration allows no roll-back now, or if no
   * node has changed its version.
   */
  #wayBack(state: State, plan: Plan): Plan | undefined {
    const { wayBack } = this.#configuration;
    if (wayBack === 'never' || rolledBackBy(plan) !== undefined) return undefined;
    if (wayBack === 'once it has ended' && this.#isRunning(pack(state))) return undefined;
    const objects = this.#places.map(({ spec }, place) => {
      const { versions } = this.#nodes.valueOf(state.nodes[place] ?? 0);
      return named(objectAt(this.#contents, versions), spec.name);
    });
    return wayBackOf(plan, objects, this.#configuration);
  }

  /** Returns what people and machines may do to nodes besides the plan. */
  #changesOfNodes(state: State): Edge[] {
    const { controls } = this.#configuration;
    return this.#places.flatMap(({ spec }, place) =>
      changesOf(this.#nodes.valueOf(state.nodes[place] ?? 0), controls, this.#contents).map(
        ({ words, to }) => ({
          label: `${words} ${spec.name}`,
          fair: false,
          to: pack(this.#moved(state, place, this.#nodes.numberOf(to), 0)),
        }),
      ),
    );
  }

  /** Returns the requests that are still in flight after another plan is applied. */
  #requestsLeft({ requests }: State): State['requests'] {
    return this.#configuration.leaders === 'any'
      ? requests
      : requests.map(() => this.#requests.numberOf([]));
  }

  async #leaderEdges(state: State): Promise<Edge[]> {
    const nodes = this.#places.map((place, index) => place.glanceAt(state.nodes[index] ?? 0));
    const { times, targetDeadlineMs } = this.#configuration;
    const moves = await this.#leaders.of({
      now: times[state.time] ?? 0,
      watchedMs: state.time > 0 && Number.isFinite(targetDeadlineMs) ? targetDeadlineMs : 0,
      plan: this.#plans.valueOf(state.plan),
      nodes: nodes.map(({ versions }) => versions),
      oldest: nodes.map(({ versions }) => this.#leaders.oldestOf(versions)),
      drains: nodes.map(({ drain }) => (drain === 'none' ? undefined : drain)),
      hookJobs: nodes.map(({ hookJobs }) => hookJobs),
      down: nodes.flatMap(({ spec, host }) =>
        spec.role === 'controller' && host.service?.life !== 'up' ? [spec.name] : [],
      ),
    });
    return moves.map((move) => ({
      label: move.label,
      fair: move.fair,
      to: pack(this.#led(state, move)),
    }));
  }

  /**
   * Applies the move of a leader. A decision to write the plan and the write itself are one step, because a decision on
   * an older view equals an earlier decision.
   */
  #led(state: State, move: LeaderMove): State {
    if (move.kind === 'record') {
      return {
        ...state,
        plan: this.#plans.numberOf([...this.#plans.valueOf(state.plan), move.content]),
      };
    }
    if (move.kind === 'drain') return this.#draining(state, move.place);
    if (move.kind === 'hook') return this.#withJob(state, move);
    const { place, content } = move;
    const known = this.#requests.valueOf(state.requests[place] ?? 0);
    const requests = [...new Set([...known, content])].toSorted((a, b) => a - b);
    return { ...state, requests: state.requests.with(place, this.#requests.numberOf(requests)) };
  }

  /**
   * Begins a drain. If the node has no pods and the process already knows the node as drained, the drain ends
   * immediately, so the state stays the same.
   */
  #draining(state: State, place: number): State {
    const node = this.#nodes.valueOf(state.nodes[place] ?? 0);
    if (node.drain === 'drained' && !node.host.hasPods) return state;
    return {
      ...state,
      nodes: state.nodes.with(place, this.#nodes.numberOf({ ...node, drain: 'draining' })),
    };
  }

  #withJob(state: State, { place, job }: Extract<LeaderMove, { kind: 'hook' }>): State {
    const node = this.#nodes.valueOf(state.nodes[place] ?? 0);
    const hookJobs = withJob(node.hookJobs, job);
    if (hookJobs === node.hookJobs) return state;
    const to = this.#nodes.numberOf({ ...node, hookJobs });
    return { ...state, nodes: state.nodes.with(place, to) };
  }

  #begin(spec: NodeSpec): NodeState {
    const content = contentOf(this.#contents, objectOf(spec, this.#configuration));
    const hasPods = spec.role === 'worker';
    return freshNode({
      content,
      file: versionAtFirst(spec, this.#configuration),
      hasPods,
      keptClosed: spec.isClosed,
      crashes: this.#configuration.crashesEach,
    });
  }

  /**
   * Returns the world's state after the state of one node has changed. If the object of the node has a new version,
   * removes the requests in flight to the object, because the API server can only refuse them.
   */
  #moved(state: State, place: number, node: number, cost: number): State {
    const versionsAt = (number = 0): number => this.#nodes.valueOf(number).versions.length;
    const isOvertaken = versionsAt(node) !== versionsAt(state.nodes[place]);
    const requests = isOvertaken
      ? state.requests.with(place, this.#requests.numberOf([]))
      : state.requests;
    return {
      ...state,
      faults: state.faults - cost,
      nodes: state.nodes.with(place, node),
      requests,
    };
  }

  /** Returns the complete state. Keeps it, because all predicates read the same state one after the other. */
  #look(text: string): Glance {
    if (this.#glance?.[0] === text) return this.#glance[1];
    const state = unpack(text);
    const plan = once(this.#planGlances, state.plan, () => {
      const seen = objectAt(this.#contents, this.#plans.valueOf(state.plan)) as Plan;
      const { spec, status } = begun(seen);
      const versions = spec.commands.map(({ k0supdate }) => k0supdate?.version ?? '');
      const { abort, retries } = readControls(seen);
      const isAborted = abort !== undefined;
      const isApproved = isApprovedIn(seen);
      const triedAgain = [...retries.keys()];
      return {
        run: runIdOf(seen),
        rollsBack: rolledBackBy(seen),
        generation: seen.metadata.generation ?? 1,
        versions,
        state: status?.state,
        isAborted,
        isApproved,
        triedAgain,
        recorded: recordedIn(status),
      };
    });
    const nodes = this.#places.map((place, index) => place.glanceAt(state.nodes[index] ?? 0));
    const glance = { ...plan, nodes };
    this.#glance = [text, glance];
    return glance;
  }
}
