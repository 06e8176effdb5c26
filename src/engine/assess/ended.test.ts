/** Proves that the record of an ended rollout is not trusted if the plan or the nodes contradict it. */

import { expect, test } from 'vitest';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, T0 } from '../../../test/support/clock/times.ts';
import type { TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { Rollout } from '../model/rollout.ts';
import { planEndOf, shownEndOf } from './ended.ts';

const stage = { ...buildStage('worker', [buildTarget('w1', 'done')]), version: 'v1.37.0' };
const done = buildRollout([stage], { phase: 'done' });
const older = { version: 'v1.36.0', isBehind: true };
const edited = (how: string): string =>
  `EditedAfterEnd: the plan was edited after it ended (${how}); it will not run: delete it and apply it again`;
const skipped = because('SkippedMinor', 'w1 would skip v1.37 on its way to v1.38.0', {
  versions: ['v1.38.0'],
});

const fromHere = because(
  'SkippedMinor',
  'w1 would go from v1.37.0 past 1.38 to v1.39.0 (rule SkippedMinor)',
  { versions: ['v1.39.0'] },
);
const URL_OF_FILE = 'https://example.com/file';
const GOOD = { 'linux-amd64': { url: URL_OF_FILE, sha256: 'a'.repeat(64) } };
const downloading = { ...stage, payloads: { 'linux-amd64': { url: URL_OF_FILE } } };
const unverified = because('Unverified', 'words that name no download', {
  downloads: [{ command: undefined, platform: 'linux-amd64', fault: 'noSha256' }],
});

test.each<[string, Rollout, Partial<TargetFacts>, number, string, string | undefined]>([
  ['as recorded', done, { asked: 'v1.37.0' }, HOUR, 'done', undefined],
  [
    'edited to another version',
    done,
    { asked: 'v1.36.5' },
    0,
    'edited',
    edited('it was carried out with v1.36.5 and now says v1.37.0'),
  ],
  [
    'edited while it runs',
    { ...done, phase: 'running' },
    { asked: 'v1' },
    HOUR,
    'running',
    undefined,
  ],
  [
    'edited as its dialect knows',
    { ...done, edit: 'w2 is listed now' },
    {},
    0,
    'edited',
    edited('w2 is listed now'),
  ],
  [
    'failed, then edited',
    { ...done, phase: 'failed' },
    { asked: 'v1.36.5' },
    0,
    'edited',
    edited('it was carried out with v1.36.5 and now says v1.37.0'),
  ],
  [
    'refused for a version that is no longer there',
    { ...done, phase: 'invalid', reason: skipped },
    {},
    0,
    'edited',
    edited('it was refused for another version than v1.37.0'),
  ],
  [
    'refused for the version that is there',
    { ...done, stages: [{ ...stage, version: 'v1.38.0' }], phase: 'invalid', reason: skipped },
    {},
    0,
    'invalid',
    'SkippedMinor: w1 would skip v1.37 on its way to v1.38.0',
  ],
  [
    'refused for a version, and asks for the version that the node runs now',
    { ...done, phase: 'invalid', reason: fromHere },
    {},
    0,
    'edited',
    edited('it was refused for another version than v1.37.0'),
  ],
  [
    'refused for a download that is still there',
    { ...done, stages: [downloading], phase: 'invalid', reason: unverified },
    {},
    0,
    'invalid',
    `Unverified: ${unverified.message}`,
  ],
  [
    'refused for a download that has a sha256 now',
    { ...done, stages: [{ ...stage, payloads: GOOD }], phase: 'invalid', reason: unverified },
    {},
    0,
    'edited',
    edited('the download that was refused has been replaced'),
  ],
  [
    'refused for a download, and has no download any more',
    { ...done, stages: [{ ...stage, payloads: {} }], phase: 'invalid', reason: unverified },
    {},
    0,
    'invalid',
    `Unverified: ${unverified.message}`,
  ],
  ['a node that has not reported yet', done, older, 0, 'done', undefined],
  [
    'a node that somebody put back',
    done,
    older,
    HOUR,
    'differs',
    'VersionDiffers: w1 runs v1.36.0, although the plan brought it to v1.37.0',
  ],
  [
    'without any target',
    buildRollout([buildStage('worker', [])], { phase: 'done' }),
    {},
    HOUR,
    'empty',
    'NoTargets: there was no target, so nothing was done',
  ],
])('%s', (_name, rollout, facts, after, phase, reason) => {
  const end = planEndOf(buildSnapshot(rollout, { w1: facts }), T0 + after);
  const { code, message } = end.reason ?? {};
  const told = end.reason === undefined ? undefined : `${code}: ${message}`;
  expect([end.phase, told]).toEqual([phase, reason]);
});

test('the targets are read once for all who ask at one moment, and anew at the next', () => {
  const built = buildSnapshot(done, { w1: older });
  let reads = 0;
  const get: typeof built.targets.get = (key) => {
    reads += 1;
    return built.targets.get(key);
  };
  const snapshot = { ...built, targets: { ...built.targets, get } };
  const first = planEndOf(snapshot, T0 + HOUR);
  const readsOfOne = reads;
  expect(planEndOf(snapshot, T0 + HOUR)).toBe(first);
  expect([readsOfOne > 0, reads]).toEqual([true, readsOfOne]);
  planEndOf(snapshot, T0 + 2 * HOUR);
  expect(reads).toBeGreaterThan(readsOfOne);
});

/** A plan of three nodes whose version was edited after the first node was done. */
function editedWhileRunning(phase: Rollout['phase'], more: Partial<Rollout> = {}) {
  const targets = ['w1', 'w2', 'w3'].map((name) => buildTarget(name, 'done'));
  const mixed = { ...buildStage('worker', targets), version: 'v1.37.0' };
  const rollout = buildRollout([mixed], { phase, ...more });
  const facts = { w1: { asked: 'v1.36.5' }, w2: { asked: 'v1.37.0' }, w3: { asked: 'v1.37.0' } };
  return buildSnapshot(rollout, facts);
}

const MIXED = 'it was edited while it ran, and installed v1.36.5 on w1, and v1.37.0 on w2, w3';

test('a plan that was edited while it ran was not edited after its end: it names the versions that it installed', () => {
  const edits = { isAfterEnd: false, isNew: true };
  expect(planEndOf(withParts(editedWhileRunning('done'), { plan: { edits } }), T0)).toEqual({
    phase: 'differs',
    reason: because('MixedVersions', `the plan has ended: ${MIXED}`),
  });
});

test('an abort that came when every node had started is told with the versions', () => {
  const snapshot = editedWhileRunning('done');
  const controls = { ...snapshot.plan.controls, abort: 'wrong version' };
  const edits = { isAfterEnd: false, isNew: true };
  expect(planEndOf(withParts(snapshot, { plan: { controls, edits } }), T0).reason?.message).toBe(
    `the plan has ended and somebody aborted it (wrong version): ${MIXED}`,
  );
});

test('a plan that was edited while it ran and then failed keeps its reason, and names the versions', () => {
  const reason = because('Aborted', 'aborted: wrong version');
  const edits = { isAfterEnd: false, isNew: true };
  expect(
    planEndOf(withParts(editedWhileRunning('failed', { reason }), { plan: { edits } }), T0),
  ).toEqual({
    phase: 'failed',
    reason: because('Aborted', `aborted: wrong version; the plan is mixed: ${MIXED}`),
  });
});

test.each([
  { done: ['w1'], installed: ', and installed v1.36.5 on w1' },
  { done: [], installed: '' },
])('a failed plan that installed one version on $done is not mixed', ({ done, installed }) => {
  const reason = because('TargetFailed', 'w3: no space left');
  const snapshot = editedWhileRunning('failed', { reason });
  const stages = snapshot.rollout.stages.map((stage) => ({
    ...stage,
    targets: stage.targets.map((target) => ({
      ...target,
      state: done.includes(target.name) ? ('done' as const) : ('failed' as const),
    })),
  }));
  const edits = { isAfterEnd: false, isNew: true };
  const rollout = { ...snapshot.rollout, stages };
  expect(
    planEndOf(withParts({ ...snapshot, rollout }, { plan: { edits } }), T0).reason?.message,
  ).toBe(`w3: no space left; the plan was edited while it ran${installed}`);
});

test.each([undefined, true])(
  'a plan counts as edited after its end if the edit was not seen before it: %s',
  (isAfterEnd) => {
    const edits = { isAfterEnd, isNew: true };
    expect(planEndOf(withParts(editedWhileRunning('done'), { plan: { edits } }), T0).phase).toBe(
      'edited',
    );
  },
);

test.each(['done', 'failed', 'skipped'] as const)(
  'an edited plan whose nodes refit retry cannot retry says what a person does, with a node that is %s',
  (state) => {
    const rollout = buildRollout([{ ...stage, targets: [buildTarget('w1', state)] }], {
      phase: state === 'failed' ? 'failed' : 'done',
      edit: 'w3 is listed now',
    });
    const abilities = { retriedBy: 'run the program again' };
    const snapshot = withParts(buildSnapshot(rollout), { abilities });
    expect(planEndOf(snapshot, T0).reason?.message).toBe(
      'the plan was edited after it ended (w3 is listed now); it will not run by itself: run the program again',
    );
  },
);

test('an edited plan that left nodes out says what their retry does', () => {
  const targets = [buildTarget('w1', 'done'), buildTarget('w2', 'skipped')];
  const rollout = buildRollout([{ ...stage, targets }], {
    phase: 'done',
    edit: 'w3 is listed now',
  });
  expect(planEndOf(buildSnapshot(rollout), T0).reason?.message).toBe(
    'the plan was edited after it ended (w3 is listed now); it will not run by itself: delete it and apply it again, or retry the nodes that were left out (run refit retry --skipped), which carries out the edited plan on these nodes only',
  );
});

test.each([
  [
    'restarts it',
    true,
    true,
    'the leader starts it again, as edits.afterEnd of UpgradePolicy p says',
  ],
  ['does not restart it', false, true, 'it will not run: delete it and apply it again'],
  ['restarted it once', true, false, 'it will not run: delete it and apply it again'],
])(
  'people read what happens to an edited plan if the policy %s',
  (_title, restartsEdited, isNew, advice) => {
    const rollout = { ...done, edit: 'w2 is listed now' };
    const edits = { isAfterEnd: true, isNew };
    const snapshot = withParts(buildSnapshot(rollout), { plan: { edits } });
    const policy = { ...buildPolicy({ restartsEdited }), name: 'p' };
    expect(shownEndOf(snapshot, policy, T0).reason?.message).toBe(
      `the plan was edited after it ended (w2 is listed now); ${advice}`,
    );
  },
);
