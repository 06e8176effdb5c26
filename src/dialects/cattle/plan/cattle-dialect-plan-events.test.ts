/**
 * Proves which Events are recorded when a status changes: the Events that the original also records, and the Events
 * that only Refit records.
 */
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

const says = (...conditions: NonNullable<NonNullable<CattlePlan['status']>['conditions']>) =>
  of({ ...resolved, conditions });
const validated = { type: 'Validated', status: 'True', reason: 'PlanIsValid' };
const invalid = { type: 'Validated', status: 'False', reason: 'Error', message: 'no drain' };
const unresolved = {
  type: 'LatestResolved',
  status: 'False',
  reason: 'Error',
  message: 'no answer',
};
const open = (reason: string, message = '') => ({
  type: 'Complete',
  status: 'False',
  reason,
  message,
});
const failedNodes = (message: string) => ({
  type: 'RefitFailedNodes',
  status: 'True',
  message: `${message}; generation 0`,
});
const ENDED = { type: 'Complete', status: 'True', reason: 'Complete' };
const RESOLVED = 'Normal Resolved resolved to version v1, hash h';
const VALID = 'Normal Validated the Plan is valid';
const JOB_FAILED = 'Job s/x failed on Node a: BackoffLimitExceeded: ';

test.each<[string, CattlePlan, CattlePlan, readonly string[]]>([
  ['nothing changed', says(validated), says(validated), []],
  ['it is valid for the first time', says(), says(validated), [VALID]],
  ['it is valid again', says(invalid), says(validated), [VALID]],
  ['it is invalid', says(validated), says(invalid), ['Warning ValidateFailed no drain']],
  [
    'it is invalid for another reason',
    says({ ...invalid, message: 'no version' }),
    says(invalid),
    ['Warning ValidateFailed no drain'],
  ],
  ['it is invalid as before', says(invalid), says(invalid), []],
  [
    'it is invalid, which has another name now',
    says({ ...invalid, reason: 'Other' }),
    says(invalid),
    ['Warning ValidateFailed no drain'],
  ],
  [
    'it is invalid, in the same words',
    says({ ...invalid, status: 'True' }),
    says(invalid),
    ['Warning ValidateFailed no drain'],
  ],
  ['nothing is said of it any more', says(validated), says(), []],
  ['it has its first status', buildCattlePlan('p'), says(validated), [VALID, RESOLVED]],
  ['no failure is recorded any more', says(failedNodes('a at t')), says(), []],
  ['its channel fails', says(), says(unresolved), ['Warning ResolveFailed no answer']],
  ['its channel answers', says(unresolved), says({ ...unresolved, status: 'True' }), []],
  [
    'its channel fails without words',
    says(),
    says({ type: 'LatestResolved', status: 'False', reason: 'Error' }),
    ['Warning ResolveFailed '],
  ],
  ['its first version', of(), of(resolved), [RESOLVED]],
  [
    'another version',
    of(resolved),
    of({ ...resolved, latestVersion: 'v2' }),
    ['Normal Resolved resolved to version v2, hash h'],
  ],
  ['its version is not known any more', of(resolved), of(), []],
  ['it waits for its window', says(), says(open('Waiting', 'not now')), ['Normal Waiting not now']],
  ['it still waits', says(open('Waiting', 'not now')), says(open('Waiting', 'not now')), []],
  [
    'every node is done',
    says(open('SyncJob')),
    says(ENDED),
    ['Normal Complete every selected node is done: version v1, hash h'],
  ],
  ['another node is selected', says(ENDED), says(open('Resolved')), []],
  [
    'more nodes start than an Event names',
    of(resolved),
    applying(...'b c d e f g h i j k l m'.split(' ')),
    ['Normal SyncJob Jobs start on b, c, d, e, f, g, h, i, j, k and 2 more: version v1, hash h'],
  ],
  [
    'the Job that the Plan tells has failed: one Event is enough',
    says(),
    says(open('JobFailed', JOB_FAILED), failedNodes('a at t')),
    [`Warning JobFailed ${JOB_FAILED}`],
  ],
  [
    'two Jobs failed, of which the Plan tells one',
    says(),
    says(open('JobFailed', JOB_FAILED), failedNodes('a at t, b at t')),
    [
      `Warning JobFailed ${JOB_FAILED}`,
      'Warning JobFailed the attempt failed on Node b: run refit why b',
    ],
  ],
  [
    'a failure that was recorded before',
    says(failedNodes('a at t')),
    says(failedNodes('a at t')),
    [],
  ],
  [
    'a node failed a second time, while the Plan tells another failure as before',
    says(open('JobFailed', JOB_FAILED), failedNodes('a at t')),
    says(open('JobFailed', JOB_FAILED), failedNodes('a at u')),
    ['Warning JobFailed the attempt failed on Node a: run refit why a'],
  ],
  ['a Job was refused, which is no failed Job', says(), says(failedNodes('a refused at t')), []],
])('the Plan says something else: %s', (_name, before, after, told) => {
  expect(sentences(before, after)).toEqual(told);
});

function sentences(before: CattlePlan, after: CattlePlan, own: readonly ReportedEvent[] = []) {
  return cattleEvents(before, after, buildRollout([]), own).map(
    ({ type, reason: { code, message } }) => `${type} ${code} ${message}`,
  );
}

test.each([
  'Started',
  'Completed',
  'TargetFailed',
  'TargetRefused',
  'InvalidPlan',
  'VersionUnknown',
  'ChannelUnanswered',
])('the Event %s of the engine is left out, because one of the original says the same', (code) => {
  expect(sentences(of(resolved), of(resolved), [ours(code)])).toEqual([]);
});
