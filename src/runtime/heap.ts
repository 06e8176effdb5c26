/** Owns a binary heap: the smallest item first, by an order given once. */

export class Heap<T> {
  readonly #items: T[] = [];
  readonly #before: (a: T, b: T) => boolean;

  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    let hole = this.#items.push(item) - 1;
    while (hole > 0) {
      const parent = (hole - 1) >> 1;
      const above = this.#items[parent];
      if (above === undefined || !this.#before(item, above)) break;
      this.#items[hole] = above;
      hole = parent;
    }
    this.#items[hole] = item;
  }

  pop(): T | undefined {
    const first = this.#items[0];
    const last = this.#items.pop();
    if (last === undefined || this.#items.length === 0) return first;
    let hole = 0;
    for (let child = this.#smallerChild(hole); child !== undefined; child = this.#smallerChild(hole)) {
      const below = this.#items[child];
      if (below === undefined || !this.#before(below, last)) break;
      this.#items[hole] = below;
      hole = child;
    }
    this.#items[hole] = last;
    return first;
  }

  clear(): void {
    this.#items.length = 0;
  }

  #smallerChild(parent: number): number | undefined {
    const [left, right] = [2 * parent + 1, 2 * parent + 2];
    const [a, b] = [this.#items[left], this.#items[right]];
    if (a === undefined) return undefined;
    return b !== undefined && this.#before(b, a) ? right : left;
  }
}
