/** Writes the output of commands: to a terminal, which can be redrawn, or to a pipe. */
import { styleText } from 'node:util';
import { printable } from '../util/printable.ts';

export interface Output {
  readonly isTerminal: boolean;
  readonly hasColours: boolean;
  /**
   * Returns the size of the output in characters. For a pipe, `columns` is $COLUMNS, or infinite if that is not set. Call it before each
   * drawing, because users resize their windows.
   */
  readonly size: () => { readonly columns: number; readonly rows: number };
  readonly write: (text: string) => void;
  /** False if the output must not contain advice, because the output disappears before the user can follow the advice. */
  readonly advises?: boolean;
}

const { stdout } = process;
/** A dumb terminal cannot move the cursor up, so it is treated as a pipe. */
const isTerminal = stdout.isTTY && process.env['TERM'] !== 'dumb';

export const standardOutput: Output = {
  isTerminal,
  // `hasColors` returns false if NO_COLOR is set.
  hasColours: isTerminal && stdout.hasColors(),
  size: () =>
    stdout.isTTY
      ? { columns: stdout.columns || 80, rows: stdout.rows || 24 }
      : { columns: columnsOf(process.env['COLUMNS']), rows: Number.POSITIVE_INFINITY },
  write: (text) => void stdout.write(printableText(text, isTerminal)),
};

/**
 * Returns the value of $COLUMNS. Users set it if they copy the output, or send the output to a pager. Returns infinity
 * if the value is not a number.
 */
export function columnsOf(text = ''): number {
  return /^[1-9]\d{0,5}$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
}

/** The standard output of commands without colours. It removes control sequences, which foreign text may contain. */
export const plainOutput: Output = {
  ...standardOutput,
  hasColours: false,
  write: (text) => standardOutput.write(printableText(text)),
};

/** Standard error, for progress while standard output gets JSON. */
export const plainErrors: Output = {
  ...plainOutput,
  isTerminal: false,
  write: (text) => void process.stderr.write(printableText(text)),
};

export type Style = Parameters<typeof styleText>[0];

export interface Medium {
  /** The number of characters in a line; infinite for a pipe without $COLUMNS. */
  readonly width: number;
  readonly paint: (style: Style | undefined, text: string) => string;
  readonly advises?: boolean | undefined;
}

export function mediumOf({
  hasColours,
  size,
  advises,
}: Pick<Output, 'hasColours' | 'size' | 'advises'>): Medium {
  // `hasColours` already decides whether the output has colours, so Node.js must not check the stream again.
  const paint = (style: Style | undefined, text: string): string =>
    style === undefined ? text : styleText(style, text, { validateStream: false });
  return { width: size().columns, paint: hasColours ? paint : (_style, text) => text, advises };
}

/**
 * Removes control characters from text, because other programs or users may have written it. Keeps line breaks. For a
 * terminal, also keeps the colours and cursor movements that this file writes.
 */
export function printableText(text: string, isTerminal = false): string {
  return text
    .split(isTerminal ? OWN_SEQUENCE : '\n')
    .map((piece, index) => (isTerminal && index % 2 === 1 ? piece : printable(piece)))
    .join(isTerminal ? '' : '\n');
}

const ESCAPE = String.fromCharCode(27);
/** Matches the line breaks, colours and cursor moves that this file writes. Style 8 is not among them, because it hides text. */
const OWN_SEQUENCE = new RegExp(
  `(\n|${ESCAPE}\\[(?:[0-79]|[239][0-9])m|${ESCAPE}\\[(?:K|0J|[0-9]+A))`,
);
const cursorUp = (lines: number): string => (lines > 0 ? `${ESCAPE}[${lines}A` : '');

/**
 * Returns a function that replaces the lines that it drew before. It cuts the lines to the size of the terminal,
 * because a line that has scrolled out of the terminal cannot be replaced.
 */
export function drawOn(output: Output): (lines: readonly string[]) => void {
  let drawn = 0;
  return (lines) => {
    const { columns, rows } = output.size();
    const left = Math.max(1, rows - 2);
    const more = `… ${lines.length - left} more lines do not fit`;
    const fitting = lines.length < rows ? lines : [...lines.slice(0, left), more];
    const shown = fitting.map((line) => `${cut(line, columns)}${ESCAPE}[K\n`);
    output.write(`${cursorUp(drawn)}${shown.join('')}${ESCAPE}[0J`);
    drawn = shown.length;
  };
}

/**
 * Returns the line with at most `width` visible characters. If it is cut, its last character is an
 * ellipsis. Colour sequences stay.
 */
function cut(line: string, width: number): string {
  const pieces = line.split(new RegExp(`(${ESCAPE}\\[[0-9;]*m)`));
  const texts = pieces.filter((_piece, index) => index % 2 === 0);
  if (texts.join('').length <= width) return line;
  let room = width - 1;
  let isMarked = false;
  return pieces
    .map((piece, index) => {
      if (index % 2 === 1) return piece;
      const shown = piece.slice(0, room);
      const mark = shown.length < piece.length && !isMarked ? '…' : '';
      isMarked ||= mark !== '';
      room -= shown.length;
      return `${shown}${mark}`;
    })
    .join('');
}
