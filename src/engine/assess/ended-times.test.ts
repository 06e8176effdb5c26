/** Tests when a target ended, when it may still report its new version, and what is said about an edited plan. */
import { expect, test } from 'vitest';
import { failed, NONE, succeeded, working } from '../../../test/support/builders/observations.ts';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { Observation, TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import {
  isRestartDue,
  lastEndOf,
  lastMoment,
  mayReportLate,
  planEndOf,
  shownEndOf,
} from './ended.ts';

const AFTER = later(MINUTE);
const SINCE = later(0);

test.each<[string, RecordedState, Observation, string]>([
  ['a done target that reports its success later', 'done', succeeded(SINCE, AFTER), AFTER],
  ['a failed target that reports its failure later', 'failed', failed('no', SINCE, AFTER), AFTER],
  [
    'a done target that reported its success earlier',
    'done',
    succeeded(SINCE, later(-MINUTE)),
    SINCE,
  ],
  ['a done target that reports a failure', 'done', failed('no', SINCE, AFTER), SINCE],
  ['a failed target that reports a success', 'failed', succeeded(SINCE, AFTER), SINCE],
  ['a skipped target that reports a failure', 'skipped', failed('no', SINCE, AFTER), SINCE],
  ['a failed target at work', 'failed', working('Restart', SINCE, AFTER), SINCE],
  ['a done target without a report', 'done', NONE, SINCE],
])('the end of %s', (_title, state, observation, expected) => {
  const target = buildTarget('w1', state, { since: SINCE });
  expect(lastMoment(target, { observation })).toBe(expected);
});

test('the last end of a plan is that of the last target, and a time that is none does not count', () => {
  const targets = [
    buildTarget('w1', 'done', { since: later(2 * MINUTE) }),
    buildTarget('w2', 'done', { since: SINCE }),
    buildTarget('w3', 'done', { since: 'soon' }),
  ];
  expect(lastEndOf(buildSnapshot(buildRollout([buildStage('worker', targets)])))).toBe(
    T0 + 2 * MINUTE,
  );
  expect(lastEndOf(buildSnapshot(buildRollout([])))).toBe(Number.NEGATIVE_INFINITY);
});

test.each<[string, boolean, RecordedState, Partial<TargetFacts>, number]>([
  ['shows its earlier version', true, 'done', { version: 'v1.36.0', earlierVersion: 'v1.36.0' }, 0],
  [
    'shows an older version, and its earlier version is unknown',
    true,
    'done',
    { version: 'v1.36.0' },
    0,
  ],
  [
    'shows a version of somebody else',
    false,
    'done',
    { version: 'v1.35.0', earlierVersion: 'v1.36.0' },
    0,
  ],
  ['shows its new version', false, 'done', { version: 'v1.37.0', earlierVersion: 'v1.37.0' }, 0],
  ['shows no version', false, 'done', { earlierVersion: 'v1.36.0' }, 0],
  [
    'has had the time',
    false,
    'done',
    { version: 'v1.36.0', earlierVersion: 'v1.36.0' },
    2 * MINUTE,
  ],
  [
    'has almost had the time',
    true,
    'done',
    { version: 'v1.36.0', earlierVersion: 'v1.36.0' },
    2 * MINUTE - 1,
  ],
  ['failed', false, 'failed', { version: 'v1.36.0', earlierVersion: 'v1.36.0' }, 0],
])(
  'whether a target may report its new version later, if it %s: %s',
  (_title, expected, state, facts, now) => {
    const stage = buildStage('worker', [buildTarget('w1', state)], { version: 'v1.37.0' });
    const snapshot = buildSnapshot(buildRollout([stage]), { w1: facts });
    const [target] = stage.targets;
    expect(target && mayReportLate(snapshot, stage, target, T0 + now)).toBe(expected);
  },
);

const stage = buildStage('worker', [buildTarget('w1', 'done')], { version: 'v1.37.0' });

function endOf(
  rollout: Partial<Rollout>,
  parts: SnapshotChanges,
  facts: Partial<TargetFacts> = {},
) {
  const snapshot = buildSnapshot(buildRollout([stage], { phase: 'done', ...rollout }), {
    w1: facts,
  });
  return planEndOf(withParts(snapshot, parts), T0);
}

test.each<[string, Partial<Rollout>, string]>([
  ['another id', { id: 'a', editedId: 'b' }, 'it ran with the id a and now has the id b'],
  ['the same id', {}, 'its spec has changed since'],
])('an edited spec with %s is named', (_title, rollout, edit) => {
  const parts = { plan: { edits: { isAfterEnd: true, isNew: true } } };
  expect(endOf(rollout, parts)).toMatchObject({ phase: 'edited', edit });
});

test('an edited plan with a failed node says what a retry of this node does', () => {
  const failedStage = buildStage('worker', [buildTarget('w1', 'failed')]);
  const rollout = buildRollout([failedStage], { phase: 'failed', edit: 'w3 is listed now' });
  expect(planEndOf(buildSnapshot(rollout), T0).reason?.message).toBe(
    'the plan was edited after it ended (w3 is listed now); it will not run: delete it and apply it again, or retry a failed node (run refit retry NODE), which carries out the edited plan on all nodes that are not done',
  );
});

test('a plan that ended well despite a reason tells the versions that it installed, not the reason', () => {
  const parts = { plan: { edits: { isAfterEnd: false, isNew: true } } };
  const reason = because('DoneWithSkipped', '1 node was skipped');
  const message = 'the plan has ended: it was edited while it ran, and installed v1.36.5 on w1';
  expect(endOf({ reason }, parts, { asked: 'v1.36.5' })).toEqual({
    phase: 'differs',
    reason: { code: 'MixedVersions', message },
  });
  expect(endOf({ phase: 'failed' }, parts, { asked: 'v1.36.5' }).phase).toBe('differs');
});

test('a stage without a version proves no edit of the version', () => {
  const empty = buildRollout([{ ...stage, version: '' }], { phase: 'failed' });
  expect(planEndOf(buildSnapshot(empty, { w1: { asked: 'v1.36.5' } }), T0).phase).toBe('failed');
});

test('a plan that was refused for its version and now has none was not corrected', () => {
  const reason = because('SkippedMinor', 'w1 would skip v1.37', { versions: ['v1.38.0'] });
  const empty = buildRollout([{ ...stage, version: '' }], { phase: 'invalid', reason });
  expect(planEndOf(buildSnapshot(empty), T0).phase).toBe('invalid');
});

test.each<[string, boolean, Partial<Rollout>, SnapshotChanges, boolean]>([
  ['was edited', true, { edit: 'x' }, { plan: { edits: { isAfterEnd: true, isNew: true } } }, true],
  [
    'was edited, and the policy restarts nothing',
    false,
    { edit: 'x' },
    { plan: { edits: { isAfterEnd: true, isNew: true } } },
    false,
  ],
  [
    'was edited and has restarted already',
    true,
    { edit: 'x' },
    { plan: { edits: { isAfterEnd: true, isNew: false } } },
    false,
  ],
  ['has no known edits', true, { edit: 'x' }, {}, false],
  [
    'was edited and aborted',
    true,
    { edit: 'x' },
    {
      plan: {
        edits: { isAfterEnd: true, isNew: true },
        controls: { ...NO_CONTROLS, abort: 'ann' },
      },
    },
    false,
  ],
  [
    'was edited while it ran',
    true,
    {},
    { plan: { edits: { isAfterEnd: false, isNew: true } } },
    false,
  ],
])(
  'whether a leader restarts a plan that %s under a policy with restarts %s',
  (_title, restartsEdited, rollout, parts, expected) => {
    const snapshot = withParts(
      buildSnapshot(buildRollout([stage], { phase: 'done', ...rollout })),
      parts,
    );
    const policy = buildPolicy({ name: 'p', restartsEdited });
    expect(isRestartDue(snapshot, policy, T0)).toBe(expected);
    // The end for people differs from the end only if the leader restarts the plan.
    const isOther = shownEndOf(snapshot, policy, T0) !== planEndOf(snapshot, T0);
    expect(isOther).toBe(expected);
  },
);

test('the reason of a plan that a leader starts again has the code of an edit', () => {
  const parts = { plan: { edits: { isAfterEnd: true, isNew: true } } };
  const snapshot = withParts(
    buildSnapshot(buildRollout([stage], { phase: 'done', edit: 'x' })),
    parts,
  );
  const end = shownEndOf(snapshot, buildPolicy({ name: 'p', restartsEdited: true }), T0);
  expect(end).toMatchObject({ phase: 'edited', edit: 'x', reason: { code: 'EditedAfterEnd' } });
});
