/**
 * Finds states that behave alike: nodes of one kind may exchange their places if no future choice between them is
 * possible. The proof. Two nodes are alike if they have the same role, the same payload, and the same record of their
 * stage in the plan. Agent, host and API server ignore the names of nodes. So two alike nodes may exchange their names
 * without any effect on agent, host and API server. Leaders use the names to find the objects of nodes, and the places
 * in the list to choose the next target. If a renaming of nodes also renames them in the plan, leaders find the same
 * objects. Leaders also make the same choice, if all targets that may still be chosen keep their places. These are the
 * targets that are recorded as pending in any command, unless the plan is aborted; and also the failed targets, if they
 * may be tried again. The choice ignores all other targets, whatever their order is, because `engine/schedule/slots.ts`
 * only receives pending targets. In everything else, the engine either handles each target of the list separately or
 * counts targets. So a state and the same state with exchanged places have the same next states, apart from exchanged
 * places. No invariant depends on names or places. This is an argument about the code. `second-tier/reduction.test.ts`
 * checks it: it explores small clusters with and without the exchange.
 */
import type { Plan } from '../../src/api/autopilot/plan.ts';
import { ABORT_ANNOTATION } from '../../src/engine/model/controls.ts';
import type { KubeObject } from '../../src/kube/resources.ts';
import { isRecord } from '../../src/util/json.ts';
import type { Configuration, NodeSpec } from './cluster.ts';
import { ANY_NODE } from './nameless.ts';
import { contentOf } from './node-state.ts';
import { type Numbering, once } from './numbering.ts';
import { recordedIn } from './plan-words.ts';

/** Returns the properties that alike nodes must have in common. */
export function kindOf({
  role,
  payload,
  isClosed,
  isHeld,
  isPinned,
  isLate,
  wave,
}: NodeSpec): string {
  return [role, payload, isClosed, isHeld, isPinned, isLate, wave].join('/');
}

/** For each new place, the old place of the node that moves there. */
export type Order = readonly number[];

/**
 * The record of the plan about the node at each place, as texts to compare; undefined if the node may still be chosen.
 */
type Rows = readonly (Row | undefined)[];

interface Row {
  readonly text: string;
  readonly isDone: boolean;
  /** True if the target is done or has ended in another way. */
  readonly isSettled: boolean;
}

const UNSETTLED: readonly string[] = ['SignalPending', 'SignalSent'];

export class Symmetry {
  readonly #nodes: Configuration['nodes'];
  readonly #contents: Numbering<KubeObject>;
  /** The recorded states of targets that may be chosen now, or after somebody orders another attempt. */
  readonly #choosable: readonly string[];
  /** False where the names of Jobs depend on the names of nodes. */
  readonly #isRenamable: boolean;
  readonly #rows = new Map<number, Rows>();
  readonly #renamed = new Map<string, number>();

  constructor({ nodes, controls, rules }: Configuration, contents: Numbering<KubeObject>) {
    this.#nodes = nodes;
    this.#contents = contents;
    this.#isRenamable = rules.hooks === undefined;
    this.#choosable =
      controls.includes('retry') || rules.retry !== undefined
        ? ['SignalPending', 'SignalApplyFailed']
        : ['SignalPending'];
  }

  /**
   * Returns the order of the nodes. Alike nodes are sorted by what is recorded of them, and then by `rank`, a number
   * for all their other properties.
   */
  orderOf(plan: number, rank: (place: number) => number): Order {
    const rows = this.#rowsOf(plan);
    const order = this.#nodes.map((_, place) => place);
    for (const places of this.#groups(rows)) {
      const sorted = places.toSorted(
        (a, b) => compare(rows[a], rows[b]) || rank(a) - rank(b) || a - b,
      );
      places.forEach((place, index) => {
        order[place] = sorted[index] ?? place;
      });
    }
    return order;
  }

  /** Reports whether the target is done, so that the answers of its node have no effect any more. */
  isDone(plan: number, place: number): boolean {
    return this.#rowsOf(plan)[place]?.isDone === true;
  }

  isSettled(plan: number, place: number): boolean {
    return this.#rowsOf(plan)[place]?.isSettled === true;
  }

  /**
   * Returns the number of the plan with renamed nodes. Each list of nodes stays sorted by name. The description of a
   * plan mentions the first of several failed nodes in the list. It is only meant for people, so its names are replaced
   * by a placeholder.
   */
  renamed(plan: number, order: Order): number {
    return once(this.#renamed, `${plan}/${order.join()}`, () => {
      const names = this.#nodes.map(({ name }) => name);
      const newNames = new Map(order.map((old, place) => [names[old] ?? '', names[place] ?? '']));
      const words = new RegExp(`\\b(${names.join('|')})\\b`, 'g');
      const told = JSON.stringify(this.#contents.valueOf(plan), (key, value: unknown) =>
        key === 'description' && typeof value === 'string'
          ? value.replaceAll(words, ANY_NODE)
          : value,
      );
      const text = told.replaceAll(words, (name) => newNames.get(name) ?? name);
      return contentOf(this.#contents, inOrder(JSON.parse(text), names) as KubeObject);
    });
  }

  #rowsOf(plan: number): Rows {
    return once(this.#rows, plan, () => {
      const { status, metadata } = this.#contents.valueOf(plan) as Plan;
      const recorded = recordedIn(status);
      const isAborted = metadata.annotations?.[ABORT_ANNOTATION] !== undefined;
      return this.#nodes.map(({ name }) => {
        const own = recorded.filter((target) => target.name === name);
        const mayBeChosen =
          own.length === 0 || own.some(({ state }) => this.#choosable.includes(state));
        if (mayBeChosen && !isAborted) return undefined;
        const isSettled = own.every(({ state }) => !UNSETTLED.includes(state));
        const isDone = own.every(({ state }) => state === 'SignalCompleted');
        return {
          text: own.map(({ state, since }) => `${state} ${since}`).join(),
          isDone,
          isSettled,
        };
      });
    });
  }

  /** Returns the groups of alike nodes that may exchange places. Every group has at least two nodes. */
  #groups(rows: Rows): number[][] {
    if (!this.#isRenamable) return [];
    const groups = new Map<string, number[]>();
    this.#nodes.forEach((spec, place) => {
      if (rows[place] !== undefined) once(groups, kindOf(spec), () => []).push(place);
    });
    return [...groups.values()].filter(({ length }) => length > 1);
  }
}

/** Sorts every list of names, and of objects with a name, in the order of `names`. */
function inOrder(value: unknown, names: readonly string[]): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => inOrder(item, names));
    return items.every((item) => placeOf(item, names) >= 0)
      ? items.toSorted((a, b) => placeOf(a, names) - placeOf(b, names))
      : items;
  }
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, inOrder(inner, names)]),
  );
}

function placeOf(item: unknown, names: readonly string[]): number {
  const name = isRecord(item) ? item['name'] : item;
  return typeof name === 'string' ? names.indexOf(name) : -1;
}

function compare({ text: a = '' }: Partial<Row> = {}, { text: b = '' }: Partial<Row> = {}): number {
  return a < b ? -1 : Number(a > b);
}
