/** The search: visits every reachable state, nearest first, and finds the shortest path to a bad one. */
import { setImmediate } from 'node:timers/promises';
import { GrowingRow } from './growing-row.ts';
import { StateTable } from './state-table.ts';

/** What weak references were asked for stays in memory until the event loop turns, which promises alone never let it do. */
const STATES_A_TURN = 1_000;

export interface Edge {
  /** What happens, for people. */
  readonly label: string;
  /** True for what happens sooner or later where nothing goes wrong any more: no fault, and no view that lags. */
  readonly fair: boolean;
  readonly to: string;
}

export interface Invariant {
  readonly name: string;
  holds(state: string): boolean;
}

/** States are texts of one length: two are the same state exactly where their texts are equal. */
export interface Model {
  readonly initial: string;
  readonly invariants: readonly Invariant[];
  /** What must hold where the run has come to its end: final, and nothing has to happen any more. */
  readonly invariantsAtRest?: readonly Invariant[];
  /** Edges that lead back to the state itself are left out. */
  next(state: string): Promise<readonly Edge[]>;
  /** True where nothing has to happen any more. */
  isFinal(state: string): boolean;
  /**
   * The state that stands for this one and for all that behave alike: it is explored in their place. Each state for
   * itself where absent.
   */
  canonical?(state: string): Promise<string>;
}

export interface Violation {
  readonly invariant: string;
  /** The labels of a shortest way to it. */
  readonly steps: readonly string[];
}

export interface Exploration {
  readonly states: number;
  readonly transitions: number;
  /** False where the search was told to end before it had seen everything. */
  readonly isWhole: boolean;
  readonly violation?: Violation;
}

export interface Search {
  /** States after which the search ends. */
  readonly maxStates?: number;
  /** Called for each state that was looked at. */
  readonly onState?: (state: string) => void;
}

/** No state without a way on but the final ones, and no way that leads back: together they say that every run ends. */
export const EVERY_RUN_ENDS = 'every-run-ends';

/** More than any configuration needs: a model that grows without bound is a mistake in itself. */
const MAX_STATES = 5_000_000;

/** Breadth first, until everything is explored, an invariant is broken, or `maxStates` are found. */
export async function explore(
  model: Model,
  { maxStates = MAX_STATES, onState }: Search = {},
): Promise<Exploration> {
  const graph = new Graph(await canonicalOf(model, model.initial));
  const wayTo = async (...way: readonly number[]): Promise<string[]> =>
    await replay(
      model,
      way.map((number) => graph.stateAt(number)),
    );
  let at = 0;
  for (; at < graph.size && graph.size < maxStates; at++) {
    const state = graph.stateAt(at);
    onState?.(state);
    const broken = model.invariants.find((invariant) => !invariant.holds(state));
    if (broken)
      return graph.exploration({ invariant: broken.name, steps: await wayTo(...graph.wayTo(at)) });
    if (at % STATES_A_TURN === 0) await setImmediate();
    const edges = await model.next(state);
    const targets: string[] = [];
    for (const { to } of edges) targets.push(await canonicalOf(model, to));
    graph.connect(at, targets);
    const restless = edges.some(({ fair }) => fair) ? undefined : brokenAtRest(model, state);
    if (restless !== undefined) {
      const steps = [...(await wayTo(...graph.wayTo(at))), 'nothing happens any more'];
      return graph.exploration({ invariant: restless, steps });
    }
  }
  const isWhole = at === graph.size;
  const round = graph.findCycle();
  if (round === undefined) return graph.exploration(undefined, isWhole);
  const steps = [...(await wayTo(...graph.wayTo(round))), 'and round in a circle'];
  return graph.exploration({ invariant: EVERY_RUN_ENDS, steps });
}

/** The name of what should hold in a state from which nothing leads on. */
function brokenAtRest(model: Model, state: string): string | undefined {
  if (!model.isFinal(state)) return EVERY_RUN_ENDS;
  return model.invariantsAtRest?.find((invariant) => !invariant.holds(state))?.name;
}

async function canonicalOf(model: Model, state: string): Promise<string> {
  return (await model.canonical?.(state)) ?? state;
}

/**
 * The labels of a run that passes these states, from the initial one on. It is found by taking that run with the states
 * themselves, not with those that stand for them, so that each label names the node that it is about.
 */
async function replay(model: Model, way: readonly string[]): Promise<string[]> {
  const steps: string[] = [];
  let state = model.initial;
  for (const wanted of way.slice(1)) {
    const edge = await edgeTo(model, state, wanted);
    steps.push(edge.label);
    state = edge.to;
  }
  return steps;
}

async function edgeTo(model: Model, state: string, wanted: string): Promise<Edge> {
  for (const edge of await model.next(state))
    if ((await canonicalOf(model, edge.to)) === wanted) return edge;
  throw new Error('a state does not behave as the one that stands for it');
}

/** Counterexamples as people read them: one numbered line for each step. */
export function printViolation({ invariant, steps }: Violation): string {
  return [
    `${invariant} is broken after ${steps.length} steps:`,
    ...steps.map((step, i) => `${i + 1}. ${step}`),
  ].join('\n');
}

/** What was found: states, and by which one each was found first. Labels are found again where they are wanted. */
class Graph {
  readonly #states = new StateTable();
  /** By state: the one that it was found from. */
  readonly #parents = new GrowingRow();
  /** All targets in one row; those of state n lie from #starts[n] to #starts[n + 1]. */
  readonly #targets = new GrowingRow();
  readonly #starts = new GrowingRow();

  constructor(initial: string) {
    this.#numberOf(initial, -1);
    this.#starts.push(0);
  }

  get size(): number {
    return this.#states.size;
  }

  stateAt(number: number): string {
    return this.#states.textOf(number);
  }

  /** Call once for each state, in the order of their numbers. */
  connect(from: number, targets: readonly string[]): void {
    for (const target of targets) this.#targets.push(this.#numberOf(target, from));
    this.#starts.push(this.#targets.length);
  }

  /** The numbers of the states on a shortest way, from the first to this one. */
  wayTo(number: number): number[] {
    const way = [number];
    let at = number;
    while (at > 0) {
      at = this.#parents.at(at);
      way.push(at);
    }
    return way.toReversed();
  }

  /** A state that can be reached from itself; depth first, with a stack of our own since ways are long. */
  findCycle(): number | undefined {
    // States whose edges were not asked for have none here.
    const explored = this.#starts.length - 1;
    const taken = new Int32Array(explored);
    const colours = new Uint8Array(this.size);
    const open = 1;
    const done = 2;
    const stack = [0];
    colours[0] = open;
    for (let at = stack.at(-1); at !== undefined; at = stack.at(-1)) {
      const place = at < explored ? this.#starts.at(at) + (taken[at] ?? 0) : Infinity;
      if (place >= this.#starts.at(at + 1)) {
        colours[at] = done;
        stack.pop();
        continue;
      }
      taken[at] = (taken[at] ?? 0) + 1;
      const target = this.#targets.at(place);
      if (colours[target] === open) return target;
      if (colours[target] === done) continue;
      colours[target] = open;
      stack.push(target);
    }
    return undefined;
  }

  exploration(violation?: Violation, isWhole = true): Exploration {
    const counts = { states: this.size, transitions: this.#targets.length, isWhole };
    return violation === undefined ? counts : { ...counts, violation };
  }

  #numberOf(state: string, from: number): number {
    const before = this.#states.size;
    const number = this.#states.numberOf(state);
    if (number === before) this.#parents.push(from);
    return number;
  }
}
