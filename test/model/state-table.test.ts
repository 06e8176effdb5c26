/** Tests that the state table loses no state and never takes one state for another. */
import { expect, test } from 'vitest';
import { GrowingRow } from './growing-row.ts';
import { StateTable } from './state-table.ts';

/** The number of states is larger than the capacity of one chunk and of the first index. */
const MANY = 70_000;
const textOf = (number: number): string =>
  String.fromCharCode(number >> 8, number & 0xff, 0xffff - (number % 7));

test('every text gets its own number in order, and is found again', () => {
  const table = new StateTable();
  for (let number = 0; number < MANY; number++) expect(table.numberOf(textOf(number))).toBe(number);
  for (let number = 0; number < MANY; number += 997) {
    expect(table.numberOf(textOf(number))).toBe(number);
    expect(table.textOf(number)).toBe(textOf(number));
  }
  expect(table.size).toBe(MANY);
});

test('texts of different lengths are refused', () => {
  const table = new StateTable();
  table.numberOf('ab');
  expect(() => table.numberOf('abc')).toThrow('3 characters, not 2');
});

test('a row keeps its numbers beyond one chunk', () => {
  const row = new GrowingRow();
  for (let number = 0; number < 1_100_000; number++) row.push(0 - number);
  expect([row.length, row.at(0), row.at(1_048_575), row.at(1_048_576), row.at(1_099_999)]).toEqual([
    1_100_000, 0, -1_048_575, -1_048_576, -1_099_999,
  ]);
});
