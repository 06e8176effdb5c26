/** Stores the visited states. Each text is stored once, complete, in a few bytes, and can be looked up. */

/** The number of rows in a chunk. The table grows by whole chunks, so that only the index is ever copied. */
const ROWS_IN_A_CHUNK = 65_536;
const EMPTY = -1;
/** The highest share of used index entries. Above it, the index is doubled. */
const FULL = 0.6;

/**
 * Uses two bytes for each character, and four bytes for each entry of the index, including empty entries. Compares the
 * complete texts, not only hashes, so two states count as the same state only if their texts are equal. All texts must
 * have the length of the first text.
 */
export class StateTable {
  readonly #chunks: Uint16Array[] = [];
  #index = new Int32Array(1024).fill(EMPTY);
  #width = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The number of a state, from 0 in the order in which they were first seen. */
  numberOf(text: string): number {
    if (this.#size === 0) this.#width = text.length;
    if (text.length !== this.#width)
      throw new RangeError(`a state of ${text.length} characters, not ${this.#width}`);
    if (this.#size >= this.#index.length * FULL) this.#grow();
    const slot = this.#slotOf(text);
    const known = this.#index[slot] ?? EMPTY;
    if (known !== EMPTY) return known;
    this.#index[slot] = this.#size;
    const [chunk, from] = this.#placeOf(this.#size);
    for (let at = 0; at < this.#width; at++) chunk[from + at] = text.charCodeAt(at);
    return this.#size++;
  }

  textOf(number: number): string {
    const [chunk, from] = this.#placeOf(number);
    return String.fromCharCode(...chunk.subarray(from, from + this.#width));
  }

  /** Returns the slot of the index in which the text is, or in which it belongs. */
  #slotOf(text: string): number {
    const mask = this.#index.length - 1;
    for (let slot = hashOf(text) & mask; ; slot = (slot + 1) & mask) {
      const number = this.#index[slot] ?? EMPTY;
      if (number === EMPTY || this.#is(number, text)) return slot;
    }
  }

  #is(number: number, text: string): boolean {
    const [chunk, from] = this.#placeOf(number);
    for (let at = 0; at < this.#width; at++)
      if (chunk[from + at] !== text.charCodeAt(at)) return false;
    return true;
  }

  #placeOf(number: number): [chunk: Uint16Array, from: number] {
    const place = Math.floor(number / ROWS_IN_A_CHUNK);
    const chunk = this.#chunks[place] ?? new Uint16Array(ROWS_IN_A_CHUNK * this.#width);
    this.#chunks[place] = chunk;
    return [chunk, (number % ROWS_IN_A_CHUNK) * this.#width];
  }

  #grow(): void {
    this.#index = new Int32Array(this.#index.length * 2).fill(EMPTY);
    for (let number = 0; number < this.#size; number++)
      this.#index[this.#slotOf(this.textOf(number))] = number;
  }
}

/** FNV-1a over the characters. The result is mixed once more, because only the lowest bits are used. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash ^= hash >>> 15;
  return Math.imul(hash, 0x2c1b3c6d) >>> 0;
}
