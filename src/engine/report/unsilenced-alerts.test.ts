/**
 * Tests that an Event reports once that alerts are not silenced, and reports it again only if they were silenced in
 * between.
 */
import { expect, test } from 'vitest';
import { unsilencedMemory } from './unsilenced-alerts.ts';

const BAD = { isGood: false, message: 'silence nodes: no answer' };
const GOOD = { isGood: true, message: 'fine' };

test('a failure is told once for each plan, until it is over', () => {
  const memory = unsilencedMemory();
  const reason = { code: 'AlertmanagerUnreachable', message: 'silence nodes: no answer' };
  expect(memory.at('a', GOOD)).toBeUndefined();
  expect(memory.at('a', BAD)).toMatchObject(reason);
  expect(memory.at('a', { ...BAD, message: 'another' })).toBeUndefined();
  expect(memory.at('b', BAD)).toMatchObject(reason);
  expect(memory.at('a', GOOD)).toBeUndefined();
  expect(memory.at('a', BAD)).toMatchObject(reason);
  memory.forget('b');
  expect(memory.at('b', BAD)).toMatchObject(reason);
  expect(memory.at('b', undefined)).toBeUndefined();
});
