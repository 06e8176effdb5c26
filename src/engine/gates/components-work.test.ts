/** Tests at which moments the controller manager and the scheduler of the cluster are asked. */

import { expect, test } from 'vitest';
import { answered } from '../model/asked.ts';
import { componentsWork, componentsWorkAfter } from './components-work.ts';
import { AFTER_TARGET, BEFORE_SIGNAL, BEFORE_TARGET } from './registry.ts';
import type { GateInput } from './types.ts';

test('the components are asked before each start, before each signal and after each controller', () => {
  for (const list of [BEFORE_TARGET, BEFORE_SIGNAL]) expect(list).toContain(componentsWork);
  expect(AFTER_TARGET).toContain(componentsWorkAfter);
});

test.each([
  ['which an API server did not answer for, keep a target waiting', false, 'wait'],
  ['which the controller may not read, keep no target waiting', true, 'pass'],
])('Leases of the components %s', (_title, isForbidden, kind) => {
  const components = answered({ states: [], problem: 'no route', isForbidden });
  const input = { cluster: { components }, stage: { role: 'controller' }, facts: {}, now: 0 };
  for (const gate of [componentsWork, componentsWorkAfter])
    expect(gate.evaluate(input as unknown as GateInput)).toMatchObject({ kind });
});
