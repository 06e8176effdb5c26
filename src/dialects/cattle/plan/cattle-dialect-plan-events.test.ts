/** Proves which Events of the original a changed status causes, and which of our Events stay as well. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { buildRollout } from '../../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../../test/support/builders/targets.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { ReportedEvent } from '../../../engine/model/reasons.ts';
import type { RecordedState } from '../../../engine/model/rollout.ts';
import { cattleEvents } from './cattle-dialect.ts';

const of = (status: CattlePlan['status'] = {}): CattlePlan => ({ ...buildCattlePlan('p'), status });
const resolved = { latestVersion: 'v1', latestHash: 'h' };
const applying = (...names: string[]): CattlePlan => of({ ...resolved, applying: names });
const complete = (reason: string, message: string): CattlePlan =>
  of({ ...resolved, conditions: [{ type: 'Complete', status: 'False', reason, message }] });
const ours = (code: string): ReportedEvent => ({
  type: 'Warning',
  reason: { code, message: 'why' },
});

test.each<[string, CattlePlan, CattlePlan, readonly ReportedEvent[], readonly string[]]>([
  [
    'the first nodes start',
    of(resolved),
    applying('a'),
    [ours('Started')],
    ['Normal SyncJob Jobs start on a: version v1, hash h'],
  ],
  [
    'one is done, and the next one starts in the same record',
    applying('a', 'b'),
    applying('b', 'c'),
    [],
    ['Normal JobComplete Jobs ended on a', 'Normal SyncJob Jobs start on c: version v1, hash h'],
  ],
  [
    'only the Job of a node that is done is told to be complete',
    applying('a', 'failed'),
    applying(),
    [],
    ['Normal JobComplete Jobs ended on a'],
  ],
  [
    'a Job failed',
    of(resolved),
    complete('JobFailed', 'Job x failed'),
    [ours('TargetFailed')],
    ['Warning JobFailed Job x failed'],
  ],
  [
    'a Job cannot be made',
    of(resolved),
    complete('ValidationFailed', 'a: refused'),
    [ours('TargetRefused')],
    ['Warning ValidationFailed a: refused'],
  ],
  [
    'a node rests',
    applying('a'),
    applying('a'),
    [ours('Resting')],
    ['Warning JobCompleteWaiting why'],
  ],
  [
    'a gate holds nodes back, which the original never says',
    of(resolved),
    of(resolved),
    [ours('NodeNotReady')],
    ['Warning NodeNotReady why'],
  ],
])('%s', (_name, before, after, own, told) => {
  const target = (host: string, state: RecordedState) => ({
    ...buildTarget(`node-${host}`, state),
    key: `${host}/node`,
  });
  const targets = [target('a', 'done'), target('failed', 'failed')];
  const rollout = buildRollout([buildStage('worker', [], { targets })]);
  expect(
    cattleEvents(before, after, rollout, own).map(
      ({ type, reason: { code, message } }) => `${type} ${code} ${message}`,
    ),
  ).toEqual(told);
});
