/** Owns the search: every state that can be reached, the nearest ones first, and the shortest way to one that must not be. */

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

/** States are texts: two are the same state exactly where their texts are equal. */
export interface Model {
  readonly initial: string;
  readonly invariants: readonly Invariant[];
  /** Edges that lead back to the state itself are left out. */
  next(state: string): Promise<readonly Edge[]>;
  /** True where nothing has to happen any more. */
  isFinal(state: string): boolean;
}

export interface Violation {
  readonly invariant: string;
  /** The labels of a shortest way to it. */
  readonly steps: readonly string[];
}

export interface Exploration {
  readonly states: number;
  readonly transitions: number;
  readonly violation?: Violation;
}

/** No state without a way on but the final ones, and no way that leads back: together they say that every run ends. */
export const EVERY_RUN_ENDS = 'every-run-ends';

/** More than any configuration needs: a model that grows without bound is a mistake in itself. */
const MAX_STATES = 3_000_000;

/** Breadth first, until everything is explored or an invariant is broken. */
export async function explore(model: Model): Promise<Exploration> {
  const graph = new Graph(model.initial);
  for (let at = 0; at < graph.size; at++) {
    const state = graph.stateAt(at);
    const broken = model.invariants.find((invariant) => !invariant.holds(state));
    if (broken) return graph.exploration({ invariant: broken.name, steps: graph.wayTo(at) });
    const edges = await model.next(state);
    graph.connect(at, edges);
    if (!model.isFinal(state) && !edges.some(({ fair }) => fair)) {
      return graph.exploration({ invariant: EVERY_RUN_ENDS, steps: [...graph.wayTo(at), 'nothing happens any more'] });
    }
  }
  const round = graph.findCycle();
  if (round === undefined) return graph.exploration();
  return graph.exploration({ invariant: EVERY_RUN_ENDS, steps: [...graph.wayTo(round), 'and round in a circle'] });
}

/** Counterexamples as people read them: one numbered line for each step. */
export function printViolation({ invariant, steps }: Violation): string {
  return [`${invariant} is broken after ${steps.length} steps:`, ...steps.map((step, i) => `${i + 1}. ${step}`)].join(
    '\n',
  );
}

class Graph {
  readonly #numbers = new Map<string, number>();
  readonly #states: string[] = [];
  /** By state: where it was found from, and how. */
  readonly #parents: number[] = [];
  readonly #labels: string[] = [];
  /** All targets in one row; those of state n lie from #starts[n] to #starts[n + 1]. */
  readonly #targets: number[] = [];
  readonly #starts: number[] = [0];

  constructor(initial: string) {
    this.#numberOf(initial, -1, '');
  }

  get size(): number {
    return this.#states.length;
  }

  stateAt(number: number): string {
    return this.#states[number] ?? '';
  }

  /** Call once for each state, in the order of their numbers. */
  connect(from: number, edges: readonly Edge[]): void {
    for (const { to, label } of edges) this.#targets.push(this.#numberOf(to, from, label));
    this.#starts.push(this.#targets.length);
  }

  wayTo(number: number): string[] {
    const steps: string[] = [];
    for (let at = number; at > 0; at = this.#parents[at] ?? 0) steps.push(this.#labels[at] ?? '');
    return steps.toReversed();
  }

  /** A state that can be reached from itself; depth first, with a stack of our own since ways are long. */
  findCycle(): number | undefined {
    const cursors = this.#starts.slice(0, this.size);
    const colours = new Uint8Array(this.size);
    const [open, done] = [1, 2];
    const stack = [0];
    colours[0] = open;
    for (let at = stack.at(-1); at !== undefined; at = stack.at(-1)) {
      const cursor = cursors[at] ?? 0;
      if (cursor === this.#starts[at + 1]) {
        colours[at] = done;
        stack.pop();
        continue;
      }
      cursors[at] = cursor + 1;
      const target = this.#targets[cursor] ?? 0;
      if (colours[target] === open) return target;
      if (colours[target] === done) continue;
      colours[target] = open;
      stack.push(target);
    }
    return undefined;
  }

  exploration(violation?: Violation): Exploration {
    const counts = { states: this.size, transitions: this.#targets.length };
    return violation === undefined ? counts : { ...counts, violation };
  }

  #numberOf(state: string, from: number, label: string): number {
    const known = this.#numbers.get(state);
    if (known !== undefined) return known;
    if (this.size === MAX_STATES) throw new Error(`more than ${MAX_STATES} states`);
    this.#numbers.set(state, this.size);
    this.#parents.push(from);
    this.#labels.push(label);
    return this.#states.push(state) - 1;
  }
}
