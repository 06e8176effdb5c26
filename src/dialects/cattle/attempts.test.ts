/** Proves which recorded failures and which Jobs no longer count, at clocks and on machines that say little. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../test/builders/cattle-plans.ts';
import { buildNode } from '../../../test/builders/nodes.ts';
import { later, MINUTE, SECOND, T0 } from '../../../test/builders/times.ts';
import { attemptsOf } from './attempts.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';

const config = { name: 'controller', namespace: 'system-upgrade', job: DEFAULT_JOB_SETTINGS };
const plan = buildCattlePlan('p');
const node = buildNode('a');
const NOW = T0 + 60 * MINUTE;

interface Recorded {
  readonly ageMs: number;
  readonly state?: 'failed' | 'unsupported';
  readonly generation?: number;
}

function isForgotten({ ageMs, state = 'failed', generation = 0 }: Recorded): boolean {
  const since = later(60 * MINUTE - ageMs);
  const failures = { nodes: new Map([['a', { state, since }]]), generation };
  return attemptsOf(config).isForgotten(node, plan, failures, NOW);
}

test.each<[string, Recorded, boolean]>([
  ['a Job that somebody deleted a minute after it failed', { ageMs: MINUTE }, true],
  ['a Job that Kubernetes itself may have deleted', { ageMs: 15 * MINUTE }, false],
  ['the same within the difference of two clocks', { ageMs: 15 * MINUTE - 20 * SECOND }, false],
  ['a failure that is as new as two clocks may differ', { ageMs: -20 * SECOND }, true],
  ['a failure of the future, since the clock was set back', { ageMs: -5 * MINUTE }, false],
  ['a failure of another generation of the Plan', { ageMs: 30 * MINUTE, generation: 7 }, true],
  ['a refusal before this process began', { ageMs: MINUTE, state: 'unsupported' }, true],
  ['a refusal since this process began', { ageMs: -MINUTE, state: 'unsupported' }, false],
])('%s: is it tried again?', (_name, recorded, expected) => {
  expect(isForgotten(recorded)).toBe(expected);
});
