/** Owns where the command line writes: a terminal that can be redrawn, or a pipe that only ever grows. */

/** In characters; infinite where nobody looks at a terminal. */
export interface Size {
  readonly columns: number;
  readonly rows: number;
}

export interface Output {
  /** True where lines can be drawn over. */
  readonly isTerminal: boolean;
  readonly hasColours: boolean;
  /** Asked before each drawing: people resize their windows. */
  readonly size: () => Size;
  readonly write: (text: string) => void;
}

const { stdout } = process;
/** A dumb terminal cannot go back up. */
const isTerminal = stdout.isTTY && process.env['TERM'] !== 'dumb';

export const standardOutput: Output = {
  isTerminal,
  // Follows NO_COLOR, and what the terminal says of itself.
  hasColours: isTerminal && stdout.hasColors(),
  size: () =>
    stdout.isTTY
      ? { columns: stdout.columns || 80, rows: stdout.rows || 24 }
      : { columns: Number.POSITIVE_INFINITY, rows: Number.POSITIVE_INFINITY },
  write: (text) => void stdout.write(text),
};

const ESCAPE = String.fromCharCode(27);
const COLOUR = new RegExp(`(${ESCAPE}\\[[0-9;]*m)`);
const CLEAR_LINE = `${ESCAPE}[K`;
const CLEAR_BELOW = `${ESCAPE}[0J`;
const cursorUp = (lines: number): string => (lines > 0 ? `${ESCAPE}[${lines}A` : '');

/** Lines that replace each other in place: cut to the size of the terminal, since what scrolls away cannot be replaced. */
export class Screen {
  readonly #output: Output;
  #drawn = 0;

  constructor(output: Output) {
    this.#output = output;
  }

  draw(lines: readonly string[]): void {
    const { columns, rows } = this.#output.size();
    const shown = fitting(lines, rows - 1).map((line) => `${cut(line, columns)}${CLEAR_LINE}\n`);
    this.#output.write(`${cursorUp(this.#drawn)}${shown.join('')}${CLEAR_BELOW}`);
    this.#drawn = shown.length;
  }
}

function fitting(lines: readonly string[], rows: number): readonly string[] {
  if (lines.length <= rows) return lines;
  const left = Math.max(1, rows - 1);
  return [...lines.slice(0, left), `… ${lines.length - left} more lines do not fit`];
}

/** Cuts to `width` visible characters; colour sequences take none and are kept. */
function cut(line: string, width: number): string {
  let visible = 0;
  return line
    .split(COLOUR)
    .map((piece, index) => {
      if (index % 2 === 1) return piece;
      const room = Math.max(0, width - visible);
      visible += piece.length;
      return piece.slice(0, room);
    })
    .join('');
}
