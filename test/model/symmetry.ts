/**
 * Finds states that behave alike: nodes of one kind may change places when nothing will choose between them.
 *
 * Why this is sound. Call two nodes alike where role, payload and what the plan says of their stage are the same. Nothing
 * in agent, host or API server looks at a node's name, so for these any two alike nodes may change names. Leaders do
 * look: by name, to find a node's object, and by place in the list, to choose which target is next. A renaming of nodes
 * that renames them in the plan too leaves the first as it was. It leaves the second as it was where targets that may
 * still be chosen (those recorded as pending in any command, unless the plan is aborted; where failed ones may be tried
 * again, those too) keep their places: the choice passes over all others
 * (`engine/schedule/slots.ts` is only ever given pending targets), whatever their order is. What else the engine does with
 * the list it does for each target by itself, or counts. So a state and one with changed places have the same next
 * states, but for changed places; and no invariant looks at names or places.
 *
 * That is an argument about the code; `second-tier/reduction.test.ts` checks it, by exploring small clusters with and without.
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

/** What nodes must have in common to be alike. */
export function kindOf({ role, payload, isClosed, isHeld, isPinned, wave }: NodeSpec): string {
  return [role, payload, isClosed, isHeld, isPinned, wave].join('/');
}

/** By new place: the old place of what goes there. */
export type Order = readonly number[];

/** What the plan says of the node at each place, as texts to be compared; undefined where it may still be chosen. */
type Rows = readonly (Row | undefined)[];

interface Row {
  readonly text: string;
  readonly isDone: boolean;
  /** True where it is done, or ended otherwise. */
  readonly isSettled: boolean;
}

const UNSETTLED: readonly string[] = ['SignalPending', 'SignalSent'];

export class Symmetry {
  readonly #nodes: Configuration['nodes'];
  readonly #contents: Numbering<KubeObject>;
  /** Recorded states of targets that may be chosen, now or once somebody orders to try them again. */
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

  /** The order in which alike nodes stand by what is recorded of them, and then by `rank`, a number for all the rest. */
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

  /** True where nothing follows from what its node answers any more. */
  isDone(plan: number, place: number): boolean {
    return this.#rowsOf(plan)[place]?.isDone === true;
  }

  isSettled(plan: number, place: number): boolean {
    return this.#rowsOf(plan)[place]?.isSettled === true;
  }

  /**
   * The number of the plan with its nodes renamed, each list of them in its old order of names. Of several that failed its
   * description tells of the first in the list; that is for people, so it names nobody here.
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

  /** Places of alike nodes that may change places, where there are several. */
  #groups(rows: Rows): number[][] {
    if (!this.#isRenamable) return [];
    const groups = new Map<string, number[]>();
    this.#nodes.forEach((spec, place) => {
      if (rows[place] !== undefined) once(groups, kindOf(spec), () => []).push(place);
    });
    return [...groups.values()].filter(({ length }) => length > 1);
  }
}

/** Every list of names, or of what has a name, in the order of these names. */
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
