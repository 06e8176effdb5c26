/**
 * The search: visits every reachable state in breadth-first order, and finds a shortest path to a state that violates
 * an invariant.
 */
import { setImmediate } from 'node:timers/promises';
import { GrowingRow } from './growing-row.ts';
import { StateTable } from './state-table.ts';

/**
 * The number of states after which the search lets the event loop turn. Targets of dereferenced weak references stay in
 * memory until then, and promises alone never let the event loop turn.
 */
const STATES_A_TURN = 1_000;

export interface Edge {
  /** Describes for people what happens on the edge. */
  readonly label: string;
  /** True if a run without further faults finally takes this edge: the edge is not a fault and needs no stale view. */
  readonly fair: boolean;
  readonly to: string;
}

export interface Invariant {
  readonly name: string;
  holds(state: string): boolean;
}

/**
 * A state is a text, and all states have the same length. Two states are the same if and only if their texts are equal.
 */
export interface Model {
  readonly initial: string;
  readonly invariants: readonly Invariant[];
  /** The invariants that must hold at the end of a run, in final states in which nothing has to happen any more. */
  readonly invariantsAtRest?: readonly Invariant[];
  /** Edges that lead back to the state itself are left out. */
  next(state: string): Promise<readonly Edge[]>;
  /** Returns true if nothing has to happen any more in this state. */
  isFinal(state: string): boolean;
  /**
   * Returns the representative of all states that behave like this state. The search explores the representative in
   * their place. Without this function, each state is its own representative.
   */
  canonical?(state: string): Promise<string>;
}

export interface Violation {
  readonly invariant: string;
  /** The labels of a shortest path to the violation. */
  readonly steps: readonly string[];
}

export interface Exploration {
  readonly states: number;
  readonly transitions: number;
  /** False if the search ended at its limit before it had visited everything. */
  readonly isWhole: boolean;
  readonly violation?: Violation;
}

export interface Search {
  /** The number of states after which the search ends. */
  readonly maxStates?: number;
  /** Called for each state that was looked at. */
  readonly onState?: (state: string) => void;
}

/**
 * Only final states have no fair edge to another state, and there are no cycles. Both together mean that every run
 * ends.
 */
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

/** Returns the name of the invariant that is violated in a state without a fair edge; undefined if none is violated. */
function brokenAtRest(model: Model, state: string): string | undefined {
  if (!model.isFinal(state)) return EVERY_RUN_ENDS;
  return model.invariantsAtRest?.find((invariant) => !invariant.holds(state))?.name;
}

async function canonicalOf(model: Model, state: string): Promise<string> {
  return (await model.canonical?.(state)) ?? state;
}

/**
 * Returns the labels of a run through these states, from the initial state on. The run uses the original states, not
 * their representatives, so that each label names the correct node.
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

/** Prints a counterexample for people: one numbered line of text for each step. */
export function printViolation({ invariant, steps }: Violation): string {
  return [
    `${invariant} is broken after ${steps.length} steps:`,
    ...steps.map((step, i) => `${i + 1}. ${step}`),
  ].join('\n');
}

/**
 * The states that were found, and for each state the state from which it was first found. Labels are not stored but
 * computed again when needed.
 */
class Graph {
  readonly #states = new StateTable();
  /** For each state, the number of the state from which it was found. */
  readonly #parents = new GrowingRow();
  /**
   * The targets of all edges, one after the other. The targets of state n are at the indexes from #starts[n] up to, but
   * not including, #starts[n + 1].
   */
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

  /** The numbers of the states on a shortest path, from the first state to this state. */
  wayTo(number: number): number[] {
    const way = [number];
    let at = number;
    while (at > 0) {
      at = this.#parents.at(at);
      way.push(at);
    }
    return way.toReversed();
  }

  /**
   * Returns a state that can be reached from itself, or undefined. The search is depth first. It has its own stack,
   * because paths are long.
   */
  findCycle(): number | undefined {
    // The edges of unexplored states are not known, so these states have no edges here.
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
