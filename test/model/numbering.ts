/** Numbers values: equal values get equal numbers, so that a state is a short row of numbers. */
import { stableStringify } from '../../src/util/json.ts';

export class Numbering<T> {
  readonly #numbers = new Map<string, number>();
  /**
   * The numbers, by the JSON text of the values with unsorted members. Sorting is slow, and most values always have
   * their members in the same order.
   */
  readonly #asTheyWere = new Map<string, number>();
  readonly #values: T[] = [];

  numberOf(value: T): number {
    return once(this.#asTheyWere, JSON.stringify(value), () =>
      once(this.#numbers, stableStringify(value), () => this.#values.push(value) - 1),
    );
  }

  valueOf(number: number): T {
    const value = this.#values[number];
    if (value === undefined) throw new RangeError(`nothing has the number ${number}`);
    return value;
  }

  get size(): number {
    return this.#values.length;
  }
}

/** Names states by texts of two characters, as the explorer needs them. */
export class StateTexts<S> {
  readonly #states = new Numbering<S>();

  textOf(state: S): string {
    const number = this.#states.numberOf(state);
    return String.fromCharCode(number >> 16, number & 0xffff);
  }

  stateOf(text: string): S {
    return this.#states.valueOf((text.charCodeAt(0) << 16) | text.charCodeAt(1));
  }
}

/** Returns what `make` returned at the first call with this key. */
export function once<K, V>(known: Map<K, V>, key: K, make: () => V): V {
  const value = known.get(key);
  if (value !== undefined) return value;
  const made = make();
  known.set(key, made);
  return made;
}
