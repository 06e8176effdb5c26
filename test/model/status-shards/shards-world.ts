/** Plans with status shards as a model to explore: all versions of objects, leaders in the middle of a round, and agents. */
import { type Plan, plans } from '../../../src/api/autopilot/plan.ts';
import { type StatusShard, statusShards } from '../../../src/api/refit/status-shard.ts';
import { phaseOfPlan } from '../../../src/dialects/autopilot/plan/states.ts';
import { mergeShards } from '../../../src/dialects/autopilot/plan/status-shards/merge.ts';
import type { KubeObject } from '../../../src/kube/resources.ts';
import { decodeSignal, encodeSignal } from '../../../src/signal/annotations.ts';
import { rfc3339 } from '../../../src/util/clock.ts';
import { buildNode } from '../../support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../support/builders/plans.ts';
import { buildWorldOf } from '../../support/builders/worlds-of-kinds.ts';
import { NOW } from '../cluster.ts';
import type { Edge, Invariant, Model } from '../explorer.ts';
import { contentOf, objectAt } from '../node-state.ts';
import { Numbering, once, StateTexts } from '../numbering.ts';
import { product } from '../product.ts';
import {
  type Asked,
  arrivalsOf,
  type Flight,
  partsOf,
  seenVersions,
  standing,
  toldOf,
  type Versions,
} from './flights.ts';
import { SHARD_INVARIANTS, type ShardGlance } from './shard-invariants.ts';
import { type Request, type Round, realShardLeader, type ShardLeader } from './shard-leader.ts';

export interface ShardConfiguration {
  /** The result of the update on each worker. */
  readonly workers: Readonly<Record<string, 'good' | 'bad'>>;
  readonly slots: number;
  /**
   * The number of leaders that may be in the middle of a round at the same time. Includes dead leaders whose requests
   * may still arrive.
   */
  readonly leaders: number;
  /** How often somebody else writes the plan. */
  readonly faults: number;
}

interface State {
  readonly objects: Versions;
  readonly flights: readonly Flight[];
  readonly faults: number;
}

interface Start {
  readonly flight: Flight;
  readonly label: string;
  readonly fair: boolean;
}

export const PLAN = `${plans.plural}/autopilot`;

export class ShardsWorld implements Model {
  readonly initial: string;
  readonly invariants: readonly Invariant[];
  readonly invariantsAtRest: readonly Invariant[];
  readonly #configuration: ShardConfiguration;
  readonly #leader: ShardLeader;
  readonly #contents = new Numbering<KubeObject>();
  readonly #texts = new StateTexts<State>();
  readonly #glances = new Map<string, ShardGlance>();
  readonly #rounds = new Map<string, Promise<Round>>();
  readonly #starts = new Map<string, Promise<readonly Start[]>>();

  constructor(configuration: ShardConfiguration, leader: ShardLeader = realShardLeader) {
    this.#configuration = configuration;
    this.#leader = leader;
    const { slots, faults } = configuration;
    const workers = Object.keys(configuration.workers);
    const targets = { workers: { ...listed(...workers), limits: { concurrent: slots } } };
    const objects: [string, KubeObject][] = [
      [PLAN, buildPlan({ commands: [{ k0supdate: buildUpdate({ targets }) }] })],
      ...workers.map((name): [string, KubeObject] => [`nodes/${name}`, buildNode(name)]),
    ];
    const numbered = objects.map(([key, object]) => [key, [contentOf(this.#contents, object)]]);
    this.initial = this.#textOf({ objects: Object.fromEntries(numbered), flights: [], faults });
    const asked = SHARD_INVARIANTS.map(({ name, atRest, holds }) => ({
      name,
      atRest,
      holds: (text: string) => holds(this.#glance(text), slots),
    }));
    this.invariants = asked.filter(({ atRest }) => !atRest);
    this.invariantsAtRest = asked.filter(({ atRest }) => atRest);
  }

  isFinal(text: string): boolean {
    return !['new', 'running'].includes(phaseOfPlan(this.#glance(text).plan.status?.state));
  }

  async next(text: string): Promise<Edge[]> {
    const state = this.#texts.stateOf(text);
    const edges = [
      ...(await this.#leaderEdges(state)),
      ...this.#flightEdges(state),
      ...this.#agentEdges(state),
    ];
    if (state.faults > 0) {
      const after = { ...state, faults: state.faults - 1 };
      const to = this.#written(after, PLAN, state.objects[PLAN]?.at(-1) ?? 0);
      edges.push({ label: 'somebody else writes the plan', fair: false, to });
    }
    return edges.filter(({ to }) => to !== text);
  }

  /** Each leader decides on any mixture of versions. After that it is in the middle of its round and may die. */
  async #leaderEdges(state: State): Promise<Edge[]> {
    const { objects, flights } = state;
    if (flights.length >= this.#configuration.leaders) return [];
    const starts = await once(
      this.#starts,
      JSON.stringify(objects),
      async () => await this.#startsAt(objects),
    );
    return starts.map(({ flight, label, fair }) => {
      return { label, fair, to: this.#textOf({ ...state, flights: [...flights, flight] }) };
    });
  }

  async #startsAt(objects: Versions): Promise<Start[]> {
    const starts = new Map<string, Start>();
    const add = (flight: Flight, fair: boolean, words: string): void => {
      const key = JSON.stringify(flight);
      const label = `a leader decides${words}: ${toldOf(flight)}`;
      if (starts.get(key)?.fair !== true) starts.set(key, { flight, label, fair });
    };
    const keys = Object.keys(objects);
    for (const seen of product(
      Object.entries(objects).map(([key, versions]) => seenVersions(key, versions)),
    )) {
      const flight = standing(this.#flightOf(await this.#roundFor(objects, seen)), objects);
      if (!flight) continue;
      const isFresh = keys.every((key, at) => seen[at] === objects[key]?.length);
      const words = isFresh ? '' : ' on what is old';
      add(flight, isFresh, words);
      for (const part of partsOf(flight)) add(part, false, `${words}, and dies after`);
    }
    return [...starts.values()];
  }

  /** `seen` contains the version that the leader sees of each object; 0 if it does not see the object. */
  async #roundFor(objects: Versions, seen: readonly number[]): Promise<Round> {
    const keys = Object.keys(objects);
    const views = keys.map((key, at) => {
      const version = seen[at] ?? 0;
      const versions = objects[key] ?? [];
      return `${key}=${versions[version - 1]}@${version}${version === versions.length ? '' : ' old'}`;
    });
    return await once(this.#rounds, views.join(), async () => {
      const shown = keys.flatMap((key, at): [string, KubeObject][] =>
        seen[at] === 0 ? [] : [[key, this.#objectAt(objects, key, seen[at])]],
      );
      const current = new Map(keys.map((key) => [key, this.#objectAt(objects, key)]));
      return await this.#leader({ seen: new Map(shown), current });
    });
  }

  #flightOf({ first, next }: Round): Flight {
    const asked = ({ key, part, object }: Request): Asked => ({
      key,
      part,
      content: contentOf(this.#contents, object),
      version: Number(object.metadata.resourceVersion ?? 0),
    });
    return { first: first.map(asked), next: next.map(asked) };
  }

  #flightEdges(state: State): Edge[] {
    return state.flights.flatMap((flight, at) => {
      const others = state.flights.filter((_, index) => index !== at);
      return arrivalsOf(flight).map(({ request, left }): Edge => {
        const label = `arrives: ${request.part} of ${request.key}`;
        return {
          label,
          fair: true,
          to: this.#arrived({ ...state, flights: [...others, left] }, request),
        };
      });
    });
  }

  #arrived(state: State, { key, part, content }: Asked): string {
    if (part === 'all') return this.#written(state, key, content);
    const object = this.#contents.valueOf(content) as Plan;
    const now = this.#contents.valueOf(state.objects[key]?.at(-1) ?? 0) as Plan;
    const [rest, { status }] = part === 'status' ? [now, object] : [object, now];
    return this.#written(
      state,
      key,
      contentOf(this.#contents, { ...rest, ...(status && { status }) }),
    );
  }

  #agentEdges(state: State): Edge[] {
    return Object.entries(this.#configuration.workers).flatMap(([name, quality]): Edge[] => {
      const key = `nodes/${name}`;
      const object = this.#objectAt(state.objects, key);
      const signal = decodeSignal(object.metadata.annotations);
      if (!signal || signal.status) return [];
      const status = quality === 'good' ? 'Completed' : 'Failed';
      const answer = encodeSignal({ ...signal, status: { status, timestamp: rfc3339(NOW) } });
      const annotations = { ...object.metadata.annotations, ...answer };
      const content = contentOf(this.#contents, {
        ...object,
        metadata: { ...object.metadata, annotations },
      });
      return [
        { label: `${name} says ${status}`, fair: true, to: this.#written(state, key, content) },
      ];
    });
  }

  #written(state: State, key: string, content: number): string {
    return this.#textOf({
      ...state,
      objects: { ...state.objects, [key]: [...(state.objects[key] ?? []), content] },
    });
  }

  #objectAt(objects: Versions, key: string, version?: number): KubeObject {
    return objectAt(this.#contents, objects[key] ?? [], version);
  }

  #glance(text: string): ShardGlance {
    const { objects } = this.#texts.stateOf(text);
    return once(this.#glances, JSON.stringify(objects), () => this.#glanceAt(objects));
  }

  #glanceAt(objects: Versions): ShardGlance {
    const versionsOf = (key: string): KubeObject[] =>
      (objects[key] ?? []).map((content) => this.#contents.valueOf(content));
    const shards = Object.keys(objects)
      .filter((key) => key.startsWith(`${statusShards.plural}/`))
      .map((key) => versionsOf(key) as StatusShard[]);
    const world = buildWorldOf([statusShards, shards.flatMap((versions) => versions.slice(-1))]);
    const signals = Object.keys(this.#configuration.workers).map((name) => {
      const annotations = versionsOf(`nodes/${name}`).map(({ metadata }) => metadata.annotations);
      return [name, annotations.map(decodeSignal)] as const;
    });
    const listed = versionsOf(PLAN) as Plan[];
    const { plan } = mergeShards(this.#objectAt(objects, PLAN) as Plan, world);
    return { plan, listed, shards, signals: new Map(signals) };
  }

  #textOf(state: State): string {
    const flights = state.flights.flatMap((flight) => standing(flight, state.objects) ?? []);
    const sorted = flights.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
    return this.#texts.textOf({ ...state, flights: sorted });
  }
}
