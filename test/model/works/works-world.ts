/** Rollouts of works as a model to explore: a plan, reports on works, the works, and requests. */
import type { Rollout, Target } from '../../../src/engine/model/rollout.ts';
import type { KubeObject } from '../../../src/kube/resources.ts';
import type { Edge, Invariant, Model } from '../explorer.ts';
import { contentOf, objectAt } from '../node-state.ts';
import { Numbering, once } from '../numbering.ts';
import { product } from '../product.ts';
import { buildWorkPlan, type Work, type WorkFamily, type WorkPlan } from './families.ts';
import type { WorkDeeds, WorkLeader } from './work-leader.ts';
import { realWorkLeader } from './work-leader.ts';

export interface WorkConfiguration {
  readonly family: WorkFamily;
  /** For each target, `bad` if the work on it fails. */
  readonly targets: Readonly<Record<string, 'good' | 'bad'>>;
  readonly slots: number;
  /** How often somebody else writes the plan. */
  readonly faults: number;
}

/** One target. */
interface Place {
  /** The reports on the work, the oldest first. A leader may see any of these reports. */
  readonly told: readonly Work[];
  /** The real progress of the work, whatever is reported. */
  readonly work: Work;
  /** True while a request for work on the target has been sent and has not arrived. */
  readonly asked: boolean;
  /** How often work was begun. */
  readonly begun: number;
}

interface State {
  /** The numbers of the contents of the plan's versions, the oldest first. */
  readonly plan: readonly number[];
  readonly faults: number;
  readonly places: readonly Place[];
}

interface WorkInvariant {
  readonly name: string;
  readonly holds: (
    rollout: Rollout,
    places: ReadonlyMap<string, Place>,
    configuration: WorkConfiguration,
  ) => boolean;
}

const UNDER_WAY = (place: Place | undefined): boolean => place?.work === 'begun';

/** The invariants of docs/internals/safety.md, worded for works instead of signals. */
const WORK_INVARIANTS: readonly WorkInvariant[] = [
  {
    name: 'concurrent-workers',
    holds: ({ stages }, places, { slots, family }) => {
      const failed = stages
        .flatMap(({ targets }) => targets)
        .filter(({ state }) => state === 'failed');
      const holding = family.failedHoldSlots ? failed.length : 0;
      return [...places.values()].filter(UNDER_WAY).length + holding <= slots;
    },
  },
  {
    name: 'intent-before-signal',
    holds: (rollout, places) =>
      targetsOf(rollout).every(
        ({ name, state }) => state !== 'pending' || places.get(name)?.work === 'none',
      ),
  },
  {
    name: 'no-signal-for-what-is-done',
    holds: (rollout, places) =>
      targetsOf(rollout).every(
        ({ name, state }) => state !== 'done' || !UNDER_WAY(places.get(name)),
      ),
  },
  {
    name: 'done-runs-it',
    holds: (rollout, places) =>
      targetsOf(rollout).every(
        ({ name, state }) => state !== 'done' || places.get(name)?.work === 'done',
      ),
  },
];

export class WorksWorld implements Model {
  readonly initial: string;
  readonly invariants: readonly Invariant[];
  readonly #configuration: WorkConfiguration;
  readonly #names: readonly string[];
  readonly #contents = new Numbering<KubeObject>();
  readonly #states = new Numbering<State>();
  readonly #decisions = new Map<string, Promise<WorkDeeds>>();
  readonly #leader: WorkLeader;

  constructor(configuration: WorkConfiguration, leader: WorkLeader = realWorkLeader) {
    this.#configuration = configuration;
    this.#names = Object.keys(configuration.targets);
    this.#leader = leader;
    const { family, slots, faults } = configuration;
    const plan = buildWorkPlan(this.#names, slots, family.failedHoldSlots);
    const place: Place = { told: ['none'], work: 'none', asked: false, begun: 0 };
    const places = this.#names.map(() => place);
    this.initial = this.#textOf({ plan: [contentOf(this.#contents, plan)], faults, places });
    this.invariants = WORK_INVARIANTS.map(({ name, holds }) => ({
      name,
      holds: (text) => {
        const { plan: versions, places: all } = this.#stateOf(text);
        const byName = new Map(this.#names.map((each, index) => [each, all[index] ?? place]));
        return holds(this.#rolloutIn(versions), byName, configuration);
      },
    }));
  }

  /**
   * Reports whether the rollout has ended, or can't continue. If a failed target holds its slot, the rollout stays
   * open, although nothing more can be done.
   */
  isFinal(text: string): boolean {
    const rollout = this.#rolloutIn(this.#stateOf(text).plan);
    if (rollout.phase !== 'new' && rollout.phase !== 'running') return true;
    const states = targetsOf(rollout).map(({ state }) => state);
    const failed = states.filter((state) => state === 'failed').length;
    if (!this.#configuration.family.failedHoldSlots || failed === 0 || states.includes('intended'))
      return false;
    return failed >= this.#configuration.slots || !states.includes('pending');
  }

  async next(text: string): Promise<Edge[]> {
    const state = this.#stateOf(text);
    const edges = [
      ...(await this.#leaderEdges(state)),
      ...this.#workEdges(state),
      ...this.#faultEdges(state),
    ];
    return edges.filter(({ to }) => to !== text);
  }

  async #leaderEdges(state: State): Promise<Edge[]> {
    const edges: Edge[] = [];
    const views = product(state.places.map(({ told }) => [...told.keys()].toReversed()));
    for (const version of state.plan.keys()) {
      for (const seen of views) {
        const isFresh =
          version === state.plan.length - 1 &&
          seen.every((index, at) => index + 1 === state.places[at]?.told.length);
        const { recorded, asked } = await this.#decide(state, version, seen);
        const lag = isFresh
          ? ''
          : `, seeing plan ${version + 1} and ${seen.map((index) => index + 1).join(' ')}`;
        const edge = (label: string, to: State): unknown =>
          edges.push({ label: `a leader ${label}${lag}`, fair: isFresh, to: this.#textOf(to) });
        if (recorded) {
          const content = contentOf(this.#contents, recorded);
          edge('records', { ...state, plan: [...state.plan, content] });
        }
        for (const name of asked) {
          const at = this.#names.indexOf(name);
          // If the work was begun before, another request has no effect.
          if (state.places[at]?.work === 'none')
            edge(`asks for work on ${name}`, this.#with(state, at, { asked: true }));
        }
      }
    }
    return edges;
  }

  async #decide(state: State, version: number, seen: readonly number[]): Promise<WorkDeeds> {
    const { family } = this.#configuration;
    const told = seen.map((index, at) => state.places[at]?.told[index] ?? 'none');
    const key = [
      state.plan.length,
      version,
      state.plan[version],
      state.plan.at(-1),
      ...told,
    ].join();
    return await once(this.#decisions, key, async () => {
      const answers = told.flatMap(
        (work, at) => family.answerOf(this.#names[at] ?? '', work) ?? [],
      );
      const plan = objectAt(this.#contents, state.plan, version + 1) as WorkPlan;
      const current = objectAt(this.#contents, state.plan) as WorkPlan;
      return await this.#leader(family, { plan, current, targets: this.#names, answers });
    });
  }

  /** Returns the edges on which a requested work begins, a work ends, or the progress of a work is reported. */
  #workEdges(state: State): Edge[] {
    return state.places.flatMap((place, at) => {
      const name = this.#names[at] ?? '';
      const to = (change: Partial<Place>): string => this.#textOf(this.#with(state, at, change));
      const edges: Edge[] = [];
      if (place.asked)
        edges.push({
          label: `${name}: what was asked for arrives`,
          fair: true,
          to: to(arrival(place)),
        });
      if (place.work === 'begun') {
        const work = this.#configuration.targets[name] === 'bad' ? 'failed' : 'done';
        edges.push({ label: `${name}: the work is ${work}`, fair: true, to: to({ work }) });
      }
      if (place.work !== place.told.at(-1)) {
        edges.push({
          label: `${name}: tells "${place.work}"`,
          fair: true,
          to: to({ told: [...place.told, place.work] }),
        });
      }
      return edges;
    });
  }

  #faultEdges(state: State): Edge[] {
    if (state.faults === 0) return [];
    const faults = state.faults - 1;
    const plan = [...state.plan, state.plan.at(-1) ?? 0];
    return [
      {
        label: 'somebody else writes the plan',
        fair: false,
        to: this.#textOf({ ...state, faults, plan }),
      },
    ];
  }

  #with(state: State, at: number, change: Partial<Place>): State {
    return {
      ...state,
      places: state.places.map((place, index) => (index === at ? { ...place, ...change } : place)),
    };
  }

  #rolloutIn(plan: readonly number[]): Rollout {
    const { spec, status } = this.#contents.valueOf(plan.at(-1) ?? 0) as WorkPlan;
    return status ?? spec;
  }

  #textOf(state: State): string {
    const number = this.#states.numberOf(state);
    return String.fromCharCode(number >> 16, number & 0xffff);
  }

  #stateOf(text: string): State {
    return this.#states.valueOf((text.charCodeAt(0) << 16) | text.charCodeAt(1));
  }
}

/** The party that does the work remembers which works it has begun. So it begins no work twice. */
function arrival({ work, begun }: Place): Partial<Place> {
  return work === 'none' ? { asked: false, work: 'begun', begun: begun + 1 } : { asked: false };
}

function targetsOf({ stages }: Rollout): Target[] {
  return stages.flatMap(({ targets }) => targets);
}
