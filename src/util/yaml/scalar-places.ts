/** Finds where the scalars of a YAML text are, so that a program can change one and keep everything else as it is written. */

import { isMap, isPair, isScalar, isSeq, type Node, parseDocument } from 'yaml';
import { scalarText } from '../scalar-text.ts';

export interface ScalarPlace {
  /** The path of the value, such as `['binaries', 'kubelet', 'url']`. An index is written as a number in a text. */
  readonly path: readonly string[];
  /** The first and the last position of the value in the text, with its quotes. */
  readonly start: number;
  readonly end: number;
}

/** Returns the places of all scalars in the first document of a valid text, in the order of the text. */
export function scalarPlaces(text: string): ScalarPlace[] {
  const { contents } = parseDocument(text, { schema: 'failsafe', prettyErrors: false });
  return contents === null ? [] : placesIn(contents, []);
}

function placesIn(node: unknown, path: readonly string[]): ScalarPlace[] {
  if (isMap(node))
    return node.items.flatMap(({ key, value }) =>
      placesIn(value, [...path, isScalar(key) ? scalarText(key.value) : '']),
    );
  if (isSeq(node))
    return node.items.flatMap((item, index) =>
      isPair(item) ? [] : placesIn(item, [...path, String(index)]),
    );
  const range = isScalar(node) ? (node as Node).range : undefined;
  return range === undefined || range === null ? [] : [{ path, start: range[0], end: range[1] }];
}
