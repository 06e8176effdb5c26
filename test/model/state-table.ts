/** The visited states: the text of each once, exact, in a few bytes, and found by its text. */

/** Rows are grown in chunks of this many, so that nothing is ever copied but the index. */
const ROWS_IN_A_CHUNK = 65_536;
const EMPTY = -1;
/** The index is doubled where more than this share of it is taken. */
const FULL = 0.6;

/**
 * Two bytes for each character, four for the index entry and its share of empty ones. Nothing is hashed away: two states
 * are one only where their texts are equal. All texts must have the length of the first.
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

  /** Where the text is in the index, or would be. */
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

/** FNV-1a over the characters, mixed once more since only the lowest bits are used. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash ^= hash >>> 15;
  return Math.imul(hash, 0x2c1b3c6d) >>> 0;
}
