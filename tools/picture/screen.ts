/** Reads what `refit status -w` writes to a terminal, and returns each picture that a person would have seen there. */

export interface Span {
  readonly text: string;
  /** The colours and weights of the text, as numbers of Select Graphic Rendition. */
  readonly styles: readonly number[];
}

export type Line = readonly Span[];

export interface Frame {
  /** Milliseconds since the start of the recording. */
  readonly at: number;
  readonly lines: readonly Line[];
}

/** A piece of output, and the milliseconds since the start of the recording at which it came. */
export interface Written {
  readonly at: number;
  readonly text: string;
}

const ESCAPE = String.fromCharCode(27);
/** The sequences that `src/cli/output.ts` writes, and line ends. A terminal adds the carriage returns. */
const SEQUENCE = new RegExp(`(\r|\n|${ESCAPE}\\[[0-9;]*[A-Za-z])`);
/** A sequence with its parameter and its command. */
const COMMAND = new RegExp(`^${ESCAPE}\\[([0-9;]*)([A-Za-z])$`);
/** The begin of a sequence whose end comes with the next piece of output. */
const INCOMPLETE = new RegExp(`${ESCAPE}(?:\\[[0-9;]*)?$`);
/** The styles that each of these numbers ends. */
const ENDED_BY: Readonly<Record<number, readonly number[]>> = { 22: [1, 2], 23: [3], 24: [4] };
const DEFAULT_COLOUR = 39;
const COLOURS = { first: 30, last: 37, brightFirst: 90, brightLast: 97 };

/**
 * Returns a frame for each complete drawing that differs from the previous drawing. A frame begins at the line where
 * the first drawing began.
 */
export function framesOf(output: readonly Written[]): Frame[] {
  const screen: Line[] = [];
  const frames: Frame[] = [];
  let row = 0;
  let line: Span[] = [];
  let styles: readonly number[] = [];
  let top = 0;
  let incomplete = '';
  for (const written of output) {
    const { at } = written;
    const text = incomplete + written.text;
    incomplete = INCOMPLETE.exec(text)?.[0] ?? '';
    const complete = text.slice(0, text.length - incomplete.length);
    for (const piece of complete.split(SEQUENCE)) {
      const [, parameter = '', command] = COMMAND.exec(piece) ?? [];
      if (piece === '\n') {
        screen[row] = line;
        line = [];
        row += 1;
      } else if (command === 'm') styles = stylesAfter(styles, Number(parameter));
      else if (command === 'A') {
        row -= Number(parameter);
        if (frames.length === 1) top = row;
      } else if (command === 'J') {
        screen.length = row;
        note(frames, { at, lines: [...screen] });
      } else if (command === undefined && piece !== '' && piece !== '\r')
        line.push({ text: piece, styles });
    }
  }
  return frames.map(({ at, lines }) => ({ at, lines: lines.slice(top) }));
}

function stylesAfter(styles: readonly number[], code: number): readonly number[] {
  if (code === 0) return [];
  if (code === DEFAULT_COLOUR) return styles.filter((style) => !isColour(style));
  const ended = ENDED_BY[code];
  if (ended !== undefined) return styles.filter((style) => !ended.includes(style));
  return [...styles.filter((style) => !isColour(code) || !isColour(style)), code];
}

export function isColour(code: number): boolean {
  const { first, last, brightFirst, brightLast } = COLOURS;
  return (code >= first && code <= last) || (code >= brightFirst && code <= brightLast);
}

function note(frames: Frame[], frame: Frame): void {
  const last = frames.at(-1);
  if (last !== undefined && JSON.stringify(last.lines) === JSON.stringify(frame.lines)) return;
  frames.push(frame);
}
