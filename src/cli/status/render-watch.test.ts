/**
 * Shows how a watch writes. For people, it redraws the terminal. For programs, it writes one document or one line for
 * each change.
 */
import { expect, test } from 'vitest';
import { T0 } from '../../../test/support/clock/times.ts';
import type { Output } from '../output.ts';
import type { ShownStatus } from './json-form.ts';
import { watchWriter } from './render.ts';

const NONE: ShownStatus = { leader: { state: 'none' }, plans: [] };
const UNKNOWN: ShownStatus = { leader: { state: 'unknown' }, plans: [] };

function recorder(isTerminal: boolean): { output: Output; written: string[] } {
  const written: string[] = [];
  const write = (text: string): void => void written.push(text);
  return {
    output: { isTerminal, hasColours: false, size: () => ({ columns: 80, rows: 24 }), write },
    written,
  };
}

test.each([
  [
    'json',
    ['{"leader":{"state":"none"},"plans":[]}\n', '{"leader":{"state":"unknown"},"plans":[]}\n'],
  ],
  [
    'yaml',
    ['---\nleader:\n  state: none\nplans: []\n', '---\nleader:\n  state: unknown\nplans: []\n'],
  ],
] as const)('%s: a document for each change, on a terminal too', (form, documents) => {
  const { output, written } = recorder(true);
  const tell = watchWriter(output, form);
  for (const view of [NONE, NONE, UNKNOWN]) tell(view, T0);
  expect(written).toEqual(documents);
});

test.each(['text', 'wide'] as const)('%s in a pipe: a line for each change', (form) => {
  const { output, written } = recorder(false);
  const tell = watchWriter(output, form);
  for (const view of [NONE, UNKNOWN]) tell(view, T0);
  expect(written.join('')).toBe('2026-11-20T08:00:00Z There is no plan.\n');
});

test('text on a terminal is drawn at every view, since ages grow', () => {
  const { output, written } = recorder(true);
  const tell = watchWriter(output, 'text');
  for (const view of [NONE, NONE]) tell(view, T0);
  expect(written).toEqual([
    'There is no plan.\u001B[K\n\u001B[0J',
    '\u001B[1AThere is no plan.\u001B[K\n\u001B[0J',
  ]);
});
