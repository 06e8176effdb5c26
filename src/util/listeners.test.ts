import { expect, test } from 'vitest';
import { createListeners } from './listeners.ts';

test('each listener gets each call until it is removed', () => {
  const calls: string[] = [];
  const listeners = createListeners<[string]>();
  const remove = listeners.add((node) => calls.push(`first ${node}`));
  listeners.add((node) => calls.push(`second ${node}`));
  listeners.call('w1');
  remove();
  remove();
  listeners.call('w2');
  expect(calls).toEqual(['first w1', 'second w1', 'second w2']);
});
