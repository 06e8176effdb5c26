/** Tests that the places of scalars lead to the text of each value, however it is written. */
import { expect, test } from 'vitest';
import { scalarPlaces } from './scalar-places.ts';

const found = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    scalarPlaces(text).map(({ path, start, end }) => [path.join('.'), text.slice(start, end)]),
  );

test('values in blocks, flows and lists are found with their quotes', () => {
  expect(found('a: 1 # one\nb: {c: "2", d: [x, \'y\']}\r\ne:\n  - f: 3\n')).toEqual({
    a: '1',
    'b.c': '"2"',
    'b.d.0': 'x',
    'b.d.1': "'y'",
    'e.0.f': '3',
  });
});

test('an alias has no place, because its value is elsewhere', () => {
  expect(found('a: &x 1\nb: *x\n')).toEqual({ a: '1' });
});

test('only the first document counts, and an empty text has no places', () => {
  expect(found('a: 1\n---\nb: 2\n')).toEqual({ a: '1' });
  expect(found('# nothing\n')).toEqual({});
});
