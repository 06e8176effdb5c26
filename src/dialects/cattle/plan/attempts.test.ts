/**
 * Proves which recorded failures and which Jobs no longer count, even with wrong clocks and with machines that report
 * no identity.
 */
import { describe, expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { later, MINUTE, SECOND, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { Target } from '../../../engine/model/rollout.ts';
import type { Job } from '../../../kube/resources.ts';
import { attemptsOf, FAILED_TYPE, failuresText, recordedFailures } from './attempts.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { jobOf } from './job.ts';

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

const target = (name: string, state: Target['state']): Target => ({
  key: `${name}/${name}`,
  name,
  state,
  since: later(MINUTE),
});

function planSaying(message: string): CattlePlan {
  const condition = { type: FAILED_TYPE, status: 'True', reason: 'Failed', message } as const;
  return { ...plan, status: { conditions: [condition] } };
}

test('what is recorded of failures and refusals is what is read again', () => {
  const current = { ...plan, metadata: { ...plan.metadata, generation: 7 } };
  const text = failuresText([target('b', 'unsupported'), target('a', 'failed')], current);
  expect(text).toBe(`a at ${later(MINUTE)}, b refused at ${later(MINUTE)}; generation 7`);
  const { nodes, generation } = recordedFailures(planSaying(text));
  expect([...nodes]).toEqual([
    ['a', { state: 'failed', since: later(MINUTE) }],
    ['b', { state: 'unsupported', since: later(MINUTE) }],
  ]);
  expect(generation).toBe(7);
});

test('a Plan without a generation is at generation 0', () => {
  expect(failuresText([target('a', 'failed')], plan)).toBe(`a at ${later(MINUTE)}; generation 0`);
});

test('a Plan that records no failure has none on any node', () => {
  const { nodes, generation } = recordedFailures(plan);
  expect([nodes.has('a'), generation]).toEqual([false, undefined]);
});

test('a record that somebody cut short still counts', () => {
  const { nodes, generation } = recordedFailures(planSaying('a'));
  expect([[...nodes], generation]).toEqual([[['a', { state: 'failed', since: '' }]], undefined]);
});

function jobWith(type: 'Complete' | 'Failed', hash = 'h'): Job {
  const made = { plan, node, version: 'v1.2.3', hash, settings: config.job };
  const conditions = [{ type, status: 'True' as const, lastTransitionTime: later(MINUTE) }];
  return { ...jobOf(config, made), status: { conditions } };
}

describe('a complete Job that Kubernetes has deleted', () => {
  const complete = jobWith('Complete');

  test('is recalled for its hash while the node is in progress', () => {
    const attempts = attemptsOf(config);
    expect(attempts.recalled(plan, 'a', 'h', complete)).toBe(complete);
    attempts.keep(plan, [target('a', 'intended')]);
    expect(attempts.recalled(plan, 'a', 'h', undefined)).toBe(complete);
    expect(attempts.recalled(plan, 'a', 'another', undefined)).toBeUndefined();
    expect(attempts.recalled(plan, 'b', 'h', undefined)).toBeUndefined();
  });

  test('is forgotten once the node is not in progress', () => {
    const attempts = attemptsOf(config);
    attempts.recalled(plan, 'a', 'h', complete);
    attempts.keep(plan, [target('b', 'intended')]);
    expect(attempts.recalled(plan, 'a', 'h', undefined)).toBeUndefined();
  });

  test('is not recalled if it failed', () => {
    const attempts = attemptsOf(config);
    attempts.recalled(plan, 'a', 'h', jobWith('Failed'));
    expect(attempts.recalled(plan, 'a', 'h', undefined)).toBeUndefined();
  });
});

test('the age of a failure counts from the end of its Job, not from when it was recorded', () => {
  const failures = {
    nodes: new Map([['a', { state: 'failed' as const, since: later(59 * MINUTE) }]]),
    generation: 0,
  };
  const attempts = attemptsOf(config);
  expect(attempts.isForgotten(node, plan, failures, NOW)).toBe(true);
  attempts.isObsolete(jobWith('Failed'), { plan, node, version: 'v1.2.3', hash: 'h' });
  expect(attempts.isForgotten(node, plan, failures, NOW)).toBe(false);
});

test('a failure before the Node was created counts no more, unless its clock is wrong', () => {
  const since = later(MINUTE);
  const failures = { nodes: new Map([['a', { state: 'failed' as const, since }]]), generation: 0 };
  const isOver = (created: number, heartbeat: number): boolean => {
    const ready = { type: 'Ready', status: 'True' as const, lastHeartbeatTime: later(heartbeat) };
    const again = {
      ...buildNode('a', { creationTimestamp: later(created) }),
      status: { conditions: [ready] },
    };
    return attemptsOf(config).isForgotten(again, plan, failures, NOW);
  };
  expect(isOver(2 * MINUTE, 3 * MINUTE)).toBe(true);
  expect(isOver(2 * MINUTE, 2 * MINUTE)).toBe(true);
  expect(isOver(MINUTE, 3 * MINUTE)).toBe(false);
  expect(isOver(4 * MINUTE, 3 * MINUTE)).toBe(false);
});
