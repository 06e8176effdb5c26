/** Tests what people learn about the present run of a plan: whether it began, and when it started and ended. */
import { describe, expect, test } from 'vitest';
import { failed, succeeded, working } from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage, PAYLOAD } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, T0 } from '../../../test/support/clock/times.ts';
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { assess } from '../assess/assess.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { Observation, TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import { readRun } from './run-reading.ts';

/** The state of a target, the seconds from the creation of the plan to its time, and its observation. */
type Given = readonly [RecordedState, number, Observation?];

const after = (seconds: number): string => later(seconds * 1000);

function read(
  given: readonly Given[],
  more: Partial<Rollout> = {},
  runs?: readonly NodeRolloutRun[],
  abort?: string,
) {
  const targets = given.map(([state, seconds], index) =>
    buildTarget(`w${index}`, state, { since: after(seconds) }),
  );
  const facts = given.map(([, , observation], index): [string, Partial<TargetFacts>] => [
    `w${index}`,
    observation === undefined ? {} : { observation },
  ]);
  const rollout = buildRollout([buildStage('worker', targets)], more);
  const controls = abort === undefined ? NO_CONTROLS : { ...NO_CONTROLS, abort };
  const snapshot = withParts(buildSnapshot(rollout, Object.fromEntries(facts)), {
    plan: { controls },
  });
  return readRun(assess(snapshot, buildPolicy(), T0 + HOUR), runs);
}

function recorded(more: Partial<NodeRolloutRun>): NodeRolloutRun {
  const own = { id: 'run-1', planUid: 'plan-uid', started: after(1), ended: after(50) };
  return { ...own, ...more } as NodeRolloutRun;
}

test('a plan that is not recorded yet has no run', () => {
  expect(read([['pending', 0]], { phase: 'new' })).toBeUndefined();
});

test('a run has a name, the recorded phase, and what its nodes ran and download', () => {
  const run = read([['pending', 0]]);
  const downloads = [{ version: 'v1.36.3+x.2', platform: 'linux-amd64', ...PAYLOAD }];
  const before = [{ role: 'worker', nodes: ['w0'] }] as const;
  expect(run).toMatchObject({ id: 'run-1', name: 'plan-uid/run-1', recorded: 'running' });
  expect(run?.versions()).toEqual({ before, downloads });
  expect(run?.versionsSince([{ ...before[0], nodes: ['w0'] }])).toEqual(before);
  expect(run?.downloadsSince([])).toEqual(downloads);
  const snapshots = [{ node: 'c1', at: after(0), path: '/s/one' }];
  expect(run?.snapshotsSince(snapshots)).toEqual(snapshots);
});

describe('whether a run has begun', () => {
  test.each<[string, Given, boolean]>([
    ['in progress', ['intended', 0], true],
    ['done', ['done', 0], true],
    ['left out', ['skipped', 0], true],
    ['failed at work', ['failed', 0, failed('the disk is full')], true],
    ['failed before any work', ['failed', 0], false],
    ['pending', ['pending', 0], false],
    ['missing', ['missing', 0], false],
    ['unsupported', ['unsupported', 0], false],
  ])('after the end, according to a target that is %s', (_title, given, hasBegun) => {
    expect(read([['pending', 0], given], { phase: 'failed' })?.hasBegun()).toBe(hasBegun);
  });

  test('a plan that runs has begun, whatever its targets do', () => {
    expect(read([['pending', 0]])?.hasBegun()).toBe(true);
  });
});

test('the record reaches from the first to the last time of its targets', () => {
  const times: Given[] = [5, 1, 9, 3].map((seconds) => ['done', seconds]);
  expect(read(times)?.span()).toEqual({ first: after(1), last: after(9) });
  expect(read([])?.span()).toEqual({ first: after(0), last: after(0) });
});

describe('when a run started', () => {
  test.each<[string, string, readonly Given[]]>([
    [
      'with the first signal',
      after(2),
      [
        ['pending', 5],
        ['intended', 3, working('Restart', after(2))],
        ['pending', 4],
      ],
    ],
    ['with the first intent', after(2), [['intended', 2, working('Restart', after(3))]]],
    ['with the first target that waits', after(4), [['pending', 4]]],
    ['with the signal of a target that is done', after(4), [['done', 9, succeeded(after(4))]]],
    ['with the plan, if nobody knows when a target was signalled', after(0), [['done', 9]]],
    ['not before the plan was created', after(3), [['intended', -5, working('Restart', after(3))]]],
    ['with the plan, if all times are before it', after(0), [['intended', -5]]],
    [
      'with a time that is exactly that of the plan',
      after(0),
      [['intended', 0, working('Restart', after(3))]],
    ],
    ['with the plan, if there is no target', after(0), []],
  ])('%s', (_title, started, given) => {
    expect(read(given)?.started()).toBe(started);
  });

  test('the history knows it better, but only of this run', () => {
    const runs = [recorded({ id: 'run-0', started: after(-9), ended: after(-8) }), recorded({})];
    expect(read([['done', 9]], {}, runs)?.started()).toBe(after(1));
    expect(read([['pending', 4]], {}, runs.slice(0, 1))?.started()).toBe(after(4));
  });

  test('a run of which no target has moved since the end of an earlier run starts now', () => {
    const runs = [recorded({ id: 'run-0' })];
    expect(read([['pending', 4]], {}, runs)?.started()).toBe(later(HOUR));
  });

  test('after an edit, the last run of the plan is still the present one', () => {
    const edited = { phase: 'done', edit: 'its spec has changed since' } as const;
    const runs = [
      recorded({ planUid: 'other', started: after(20) }),
      recorded({ id: 'run-0', started: after(21) }),
      recorded({ started: after(22) }),
    ];
    expect(read([['done', 9]], edited, runs)?.started()).toBe(after(21));
    expect(read([['done', 9]], edited, runs)?.ended()).toBe(after(50));
    expect(read([['done', 9]], edited, [])?.ended()).toBe(after(9));
    expect(read([['done', 9]], { phase: 'done' }, runs)?.started()).toBe(after(22));
  });
});

describe('when a run ended', () => {
  const DONE: Given[] = [5, 9, 7].map((seconds) => ['done', seconds]);
  const ABORTED = because('Aborted', 'the plan was aborted: no');

  test('a run that goes on has no end', () => {
    expect(read(DONE)?.ended()).toBeUndefined();
  });

  test('it ended with its last target, or as its node reported', () => {
    expect(read(DONE, { phase: 'done' })?.ended()).toBe(after(9));
    const reported: Given = ['done', 6, succeeded(after(0), after(12))];
    expect(read([...DONE, reported], { phase: 'done' })?.ended()).toBe(after(12));
    expect(read([], { phase: 'done' })?.ended()).toBeUndefined();
  });

  test('the recorded end counts, unless a target was retried since', () => {
    const end = (ended: string) => read(DONE, { phase: 'done' }, [recorded({ ended })])?.ended();
    expect(end(after(50))).toBe(after(50));
    expect(end(after(8))).toBe(after(9));
  });

  test.each<[string, Partial<Rollout>, string | undefined, string | undefined]>([
    ['ended by an abort has no known end', { reason: ABORTED }, 'no', undefined],
    ['aborted after its end ended with its last target', {}, 'no', after(9)],
    [
      'that failed before its abort ended with its last target',
      { reason: because('Stopped', 'too many failures') },
      'no',
      after(9),
    ],
    [
      'whose abort was taken back ended with its last target',
      { reason: ABORTED },
      undefined,
      after(9),
    ],
  ])('without a history, a run %s', (_title, more, abort, ended) => {
    expect(read(DONE, { phase: 'failed', ...more }, [], abort)?.ended()).toBe(ended);
  });

  test('the history has the end of an aborted run', () => {
    const failed = { phase: 'failed', reason: ABORTED } as const;
    expect(read(DONE, failed, [recorded({})], 'no')?.ended()).toBe(after(50));
  });
});
