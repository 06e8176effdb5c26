/** Tests at which moments the controller manager and the scheduler of the cluster are asked. */
import { expect, test } from 'vitest';
import { componentsWork, componentsWorkAfter } from './components-work.ts';
import { AFTER_TARGET, BEFORE_SIGNAL, BEFORE_TARGET } from './registry.ts';

test('the components are asked before each start, before each signal and after each controller', () => {
  for (const list of [BEFORE_TARGET, BEFORE_SIGNAL]) expect(list).toContain(componentsWork);
  expect(AFTER_TARGET).toContain(componentsWorkAfter);
});
