/** Owns where the command line writes: a terminal that can be redrawn, or a pipe that only ever grows. */

export interface Output {
  readonly isTerminal: boolean;
  write(text: string): void;
}

export const standardOutput: Output = {
  isTerminal: process.stdout.isTTY,
  write: (text) => void process.stdout.write(text),
};

const CURSOR_UP = (lines: number): string => `\u001B[${lines}A`;
const CLEAR_BELOW = '\u001B[0J';

/** Lines that replace each other in place. Lines longer than the terminal are cut, since each must stay one line. */
export class Screen {
  readonly #output: Output;
  readonly #columns: () => number;
  #drawn = 0;

  constructor(output: Output, columns: () => number = () => process.stdout.columns || 80) {
    this.#output = output;
    this.#columns = columns;
  }

  draw(lines: readonly string[]): void {
    const width = this.#columns();
    const up = this.#drawn > 0 ? CURSOR_UP(this.#drawn) : '';
    this.#output.write(`${up}${CLEAR_BELOW}${lines.map((line) => `${cut(line, width)}\n`).join('')}`);
    this.#drawn = lines.length;
  }
}

/** Cuts to `width` visible characters; colour sequences take none and are kept. */
function cut(line: string, width: number): string {
  let visible = 0;
  // oxlint reads a control character here: it is the escape that starts a colour sequence.
  const pieces = line.split(new RegExp(`(${String.fromCharCode(27)}\\[[0-9;]*m)`));
  return pieces
    .map((piece, index) => {
      if (index % 2 === 1) return piece;
      const room = Math.max(0, width - visible);
      visible += piece.length;
      return piece.slice(0, room);
    })
    .join('');
}
