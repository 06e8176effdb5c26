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
  const input = {
    rollout: {},
    cluster: { components },
    stage: { role: 'controller' },
    facts: { observation: { kind: 'none' } },
    now: 0,
  };
  for (const gate of [componentsWork, componentsWorkAfter])
    expect(gate.evaluate(input as unknown as GateInput)).toMatchObject({ kind });
});

const RENEWALS = [
  ['before the new version worked', 4000, 'wait'],
  ['while the new version already worked', 2500, 'pass'],
  ['after the report', -500, 'pass'],
] as const;
/** The leader asks before it lets the agent continue, and once more after the end. */
const REPORTED = [{ kind: 'working', step: 'UnCordoning' }, { kind: 'succeeded' }];

test.each(RENEWALS.flatMap((row) => REPORTED.map((reported) => [...row, reported] as const)))(
  'a renewal %s: %s ms before the report of a controller that had worked for 5 s lets it %s at %j',
  (_when, earlierMs, kind, reported) => {
    const now = 100_000;
    const watchedMs = 1000;
    const renewedAt = now - watchedMs - earlierMs;
    const state = { name: 'kube-scheduler', state: 'working', renewedAt, silentMs: 0 } as const;
    const input = {
      cluster: { components: answered({ states: [state] }) },
      stage: { role: 'controller' },
      facts: { observation: { ...reported, report: { upMs: 5000 } }, watchedMs },
      now,
    };
    expect(componentsWorkAfter.evaluate(input as unknown as GateInput)).toMatchObject({ kind });
  },
);
