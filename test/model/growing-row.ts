/** A growing array of whole numbers with four bytes each. */

const NUMBERS_IN_A_CHUNK = 1_048_576;

export class GrowingRow {
  readonly #chunks: Int32Array[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(number: number): void {
    const place = Math.floor(this.#length / NUMBERS_IN_A_CHUNK);
    const chunk = this.#chunks[place] ?? new Int32Array(NUMBERS_IN_A_CHUNK);
    this.#chunks[place] = chunk;
    chunk[this.#length++ % NUMBERS_IN_A_CHUNK] = number;
  }

  /** Returns the number at the index; 0 beyond the end. */
  at(place: number): number {
    return this.#chunks[Math.floor(place / NUMBERS_IN_A_CHUNK)]?.[place % NUMBERS_IN_A_CHUNK] ?? 0;
  }
}
