/** Owns what the text of `refit status` is written on: with colours or without, as wide as people see it. */
import { styleText } from 'node:util';
import type { Output } from '../output.ts';

export type Style = Parameters<typeof styleText>[0];

export interface Medium {
  /** Characters in a line; infinite in a pipe. */
  readonly width: number;
  readonly paint: (style: Style, text: string) => string;
}

export function mediumOf({ hasColours, size }: Pick<Output, 'hasColours' | 'size'>): Medium {
  return { width: size().columns, paint: hasColours ? paintForTerminal : (_style, text) => text };
}

/** Whether there are colours is decided already: Node must not look at the stream again. */
function paintForTerminal(style: Style, text: string): string {
  return styleText(style, text, { validateStream: false });
}
