/** Shows what the page learns about an earlier run of a plan, and that it never guesses what the record does not say. */
import { expect, test } from 'vitest';
import { MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { NodeRollout, NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { rfc3339 } from '../../util/clock.ts';
import type { ShownPlan } from '../status/json-form.ts';
import { explainRun } from './explain-run.ts';

const KEY = 'autopilot//autopilot';
const OLD = 'v1.36.2';
const NEW = 'v1.36.3';
const COUNTS = { total: 2, done: 2, failed: 0, inProgress: 0, pending: 0, skipped: 0 };

function runOf(more: Partial<NodeRolloutRun> = {}): NodeRolloutRun {
  return {
    id: 'id1',
    started: rfc3339(T0),
    ended: rfc3339(T0 + 5 * MINUTE),
    phase: 'done',
    version: NEW,
    counts: COUNTS,
    before: [{ role: 'worker', version: OLD, nodes: ['w1', 'w2'] }],
    ...more,
  };
}

function explained(name: string, ...history: readonly NodeRolloutRun[]) {
  const rollout = {
    metadata: { name: 'autopilot' },
    spec: { plan: { apiVersion: 'a/v1', kind: 'Plan', name: 'autopilot', uid: 'u' } },
    status: { history: [...history] },
  } as NodeRollout;
  const plan = { dialect: 'autopilot', name: 'autopilot', uid: 'u' } as ShownPlan;
  const status = { leader: { state: 'unknown' as const }, plans: [plan] };
  return explainRun({ status, rollouts: [rollout] }, KEY, name);
}

test('each node of a run that is done has its version before and after', () => {
  expect(explained('id1', runOf())).toEqual({
    started: rfc3339(T0),
    ended: rfc3339(T0 + 5 * MINUTE),
    version: NEW,
    said: [
      { heading: 'ended', lines: ['done 2/2, after 5 min'] },
      { heading: 'nodes', lines: ['2 done', 'the record has no steps of single nodes'] },
    ],
    nodes: [
      { name: 'w1', from: OLD, to: NEW },
      { name: 'w2', from: OLD, to: NEW },
    ],
  });
});

test('a run that failed says why, and claims no version after it for a node that the record does not prove', () => {
  const counts = { ...COUNTS, total: 4, done: 1, failed: 2, pending: 1 };
  const failures = [{ node: 'w2', message: 'w2: no space left' }, { node: 'w9' }];
  const message = 'the failure budget is used up';
  const shown = explained('id1', runOf({ phase: 'failed', counts, failures, message }));
  expect(shown?.nodes).toEqual([
    { name: 'w1', from: OLD },
    { name: 'w2', from: OLD, failure: 'w2: no space left' },
    { name: 'w9', failure: '' },
  ]);
  expect(shown?.said).toEqual([
    { heading: 'ended', lines: ['failed 1/4, after 5 min'] },
    {
      heading: 'why',
      lines: ['the failure budget is used up', 'w2 failed: no space left', 'w9 failed'],
    },
    {
      heading: 'nodes',
      lines: [
        '1 done, 2 failed, 1 never started',
        'the record names the failed nodes, not those that are done',
        'the record has no steps of single nodes',
      ],
    },
  ]);
});

test('nodes that the record does not name are one sentence', () => {
  const before = [{ role: 'worker', version: OLD, others: true } as const];
  expect(explained('id1', runOf({ before }))?.said.at(-1)?.lines).toContain(
    `all other workers ran ${OLD} before`,
  );
});

test('runs with the same id are told apart by their start, and the run in progress is no earlier run', () => {
  const started = rfc3339(T0 - 60 * MINUTE);
  const first = runOf({ started, version: OLD });
  expect(explained(`id1@${started}`, runOf(), first)?.version).toBe(OLD);
  expect(explained('id1', runOf(), first)).toBeUndefined();
  const { ended: _ended, ...open } = runOf({ started: rfc3339(T0 + MINUTE) });
  expect(explained('id1', open, first)?.version).toBe(OLD);
  expect(explained('id1', open)).toBeUndefined();
});

test.each(['', 'nosuch', '__proto__', `id1@${'x'.repeat(5000)}`])(
  'there is no run with the name %j',
  (name) => {
    expect(explained(name, runOf())).toBeUndefined();
  },
);

test('a plan that does not exist, or has no NodeRollout, has no runs', () => {
  const status = { leader: { state: 'unknown' as const }, plans: [] };
  expect(explainRun({ status, rollouts: [] }, KEY, 'id1')).toBeUndefined();
});
