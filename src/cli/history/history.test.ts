/** Shows what `refit history` prints for runs with every kind of end, and by which names it finds a plan. */
import { expect, test } from 'vitest';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { NodeRollout, NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { DIALECT_LABEL } from '../../engine/report/node-rollout-object.ts';
import { historyLines, historyOf, isHistoryOf } from './history.ts';

const NOW = T0 + 60 * MINUTE;
const COUNTS = { total: 8, done: 8, failed: 0, inProgress: 0, pending: 0, skipped: 0 };
const RUN: NodeRolloutRun = {
  id: 'one',
  version: 'v1',
  started: later(0),
  phase: 'done',
  counts: COUNTS,
};
const SCREEN = { hasColours: false, size: () => ({ columns: 100, rows: 50 }) };

function rolloutWith(history: NodeRolloutRun[], planDeleted?: string): NodeRollout {
  return {
    metadata: {
      name: 'cattle-p',
      namespace: 'system-upgrade',
      labels: { [DIALECT_LABEL]: 'cattle' },
    },
    spec: {
      plan: {
        apiVersion: 'upgrade.cattle.io/v1',
        kind: 'Plan',
        name: 'p',
        namespace: 'system-upgrade',
      },
    },
    status: { phase: 'done', history, ...(planDeleted === undefined ? {} : { planDeleted }) },
  };
}

function linesOf(...history: NodeRolloutRun[]): string[] {
  return historyLines([historyOf(rolloutWith(history))], NOW, SCREEN).slice(1);
}

test.each<[string, Partial<NodeRolloutRun>, readonly string[]]>([
  [
    'is done',
    { ended: later(10 * MINUTE) },
    [`  ${later(0)}  done 8/8 after 10 min, 50 min ago  to v1  (one)`],
  ],
  [
    'has a snapshot of etcd',
    {
      ended: later(10 * MINUTE),
      snapshots: [{ node: 'c1', at: later(0), path: '/s/one', bytes: 5, sha256: 'ab' }],
    },
    [
      `  ${later(0)}  done 8/8 after 10 min, 50 min ago  to v1  (one)`,
      `      snapshot of etcd on c1: /s/one (5 bytes, SHA-256 ab, taken ${later(0)})`,
    ],
  ],
  [
    'runs',
    { phase: 'running', counts: { ...COUNTS, done: 3 } },
    [`  ${later(0)}  running 3/8 for 1 h  to v1  (one)`],
  ],
  [
    'failed, with the cause of each node',
    {
      phase: 'failed',
      ended: later(MINUTE),
      counts: { ...COUNTS, done: 5, failed: 3 },
      reason: 'TargetFailed',
      message: 'w1 failed',
      failures: [{ node: 'w1', message: 'w1: Failed: no space left' }, { node: 'w2' }],
    },
    [
      `  ${later(0)}  failed 5/8 after 1 min, 59 min ago  to v1  (one)`,
      '      w1 failed (TargetFailed)',
      '      w1 failed: no space left',
      '      w2 failed',
      '      1 more node failed',
    ],
  ],
  [
    'failed with a cause that its message tells, too: once',
    {
      phase: 'failed',
      ended: later(MINUTE),
      counts: { ...COUNTS, done: 6, failed: 2 },
      reason: 'TargetFailed',
      message: 'w10: FailedDownload: no space left',
      failures: [
        { node: 'w10', message: 'FailedDownload: no space left' },
        { node: 'w1', message: 'FailedDownload: no space left' },
      ],
    },
    [
      `  ${later(0)}  failed 6/8 after 1 min, 59 min ago  to v1  (one)`,
      '      w10: FailedDownload: no space left (TargetFailed)',
      '      w1 failed: FailedDownload: no space left',
    ],
  ],
  [
    'failed on several nodes with one cause: a line for all of them',
    {
      phase: 'failed',
      ended: later(MINUTE),
      counts: { ...COUNTS, done: 5, failed: 3 },
      failures: [
        { node: 'w1', message: 'w1: no space left' },
        { node: 'w2', message: 'the disk is broken' },
        { node: 'w3', message: 'w3: no space left' },
      ],
    },
    [
      `  ${later(0)}  failed 5/8 after 1 min, 59 min ago  to v1  (one)`,
      '      w1, w3 failed: no space left',
      '      w2 failed: the disk is broken',
    ],
  ],
])('the history shows the lines of a run that %s', (_name, run, lines) => {
  expect(linesOf({ ...RUN, ...run })).toEqual(lines);
});

test('runs with the same id are named with their start, as `--run` takes it', () => {
  const again = { ...RUN, started: later(20 * MINUTE) };
  const ends = linesOf(again, { ...RUN, id: 'two' }, RUN).map((line) => line.split(' ').at(-1));
  expect(ends).toEqual([`(one@${later(20 * MINUTE)})`, '(two)', `(one@${later(0)})`]);
});

test('text of the cluster has no control characters, and a deleted plan says so', () => {
  const hostile = rolloutWith([{ ...RUN, message: 'a\u001B[31mb\nc' }], later(30 * MINUTE));
  const text = historyLines([historyOf(hostile)], NOW, SCREEN).join('\n');
  expect(text).not.toContain('\u001B');
  expect(text).toContain('Plan system-upgrade/p  deleted 30 min ago');
  expect(historyLines([], NOW, SCREEN)).toEqual([
    'There is no NodeRollout, so no run is recorded.',
  ]);
  expect(linesOf()).toEqual(['  no run is recorded']);
});

test.each([
  ['p', true],
  ['system-upgrade/p', true],
  ['cattle/p', true],
  ['cattle/system-upgrade/p', true],
  ['plan/p', true],
  ['kubeadm/p', false],
  ['q', false],
])('the name %s means the plan: %s', (name, isMeant) => {
  expect(isHistoryOf(historyOf(rolloutWith([])), name)).toBe(isMeant);
});

test('on a narrow terminal a run has several lines, and nothing is cut', () => {
  const narrow = { hasColours: false, size: () => ({ columns: 40, rows: 50 }) };
  const history = historyOf(rolloutWith([{ ...RUN, ended: later(10 * MINUTE) }]));
  expect(historyLines([history], NOW, narrow).slice(1)).toEqual([
    `  ${later(0)}  done 8/8`,
    '    after 10 min, 50 min ago  to v1',
    '    (one)',
  ]);
});

test.each([
  ['by its id', [RUN], 'one'],
  [
    'with its start, if two runs have its id',
    [RUN, { ...RUN, started: later(-MINUTE) }],
    `one@${later(0)}`,
  ],
  ['by the id that the plan names, if it is not in the history any more', [], 'one'],
] as const)('a run that rolls another run back names it %s', (_case, earlier, name) => {
  const runs = earlier.map((run) => ({ ...run, planUid: 'uid' }));
  const [first] = runs;
  const rollsBack = {
    run: first === undefined ? 'uid/one' : `one@${first.started}`,
    reason: 'anna: bad',
  };
  const back: NodeRolloutRun = { ...RUN, id: 'back', phase: 'running', rollsBack };
  expect(linesOf(back, ...runs)[1]).toBe(`      rolls run ${name} back, says anna: bad`);
});
