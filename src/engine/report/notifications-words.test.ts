/** Tests the words of each notification, and its limits: the most failures, the longest text, and what is no news. */
import { expect, test } from 'vitest';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { FailedTarget, PlanReading } from '../explain/plan-reading.ts';
import type { Wait } from '../model/decision.ts';
import { because } from '../model/reasons.ts';
import {
  LONG_MS,
  longAfter,
  notificationsOf,
  standingOf,
  type Told,
  toldOf,
} from './notifications.ts';

const PLAN = 'toy/fleet';
const NOTHING_TOLD: Told = {
  run: 'r',
  phase: 'running',
  waves: 0,
  plannedWaves: 0,
  approval: 0,
  failed: 0,
  waiting: '',
};

interface Words {
  readonly phase?: 'running' | 'done' | 'failed';
  readonly counts?: Partial<PlanReading['counts']>;
  readonly versions?: readonly string[];
  readonly failures?: readonly FailedTarget[];
  readonly hadVersion?: readonly boolean[];
  readonly work?: 'upgrade' | 'roll-back';
  readonly end?: PlanReading['end'];
  readonly cause?: PlanReading['cause'];
  readonly waits?: readonly Wait[];
  readonly span?: { readonly first: string; readonly last: string };
}

function readingOf({
  phase = 'running',
  counts,
  versions = ['v2'],
  failures = [],
  hadVersion = [false],
  work = 'upgrade',
  end = { phase },
  cause,
  waits = [],
  span = { first: later(0), last: later(0) },
}: Words): PlanReading {
  return {
    now: T0,
    plan: { source: { uid: 'uid' } },
    end,
    cause,
    isOver: phase !== 'running',
    run: { id: 'r', name: 'r', recorded: phase, hasBegun: () => true, span: () => span },
    versions,
    counts: { total: 2, done: 0, failed: 0, inProgress: 0, pending: 0, skipped: 0, ...counts },
    waits,
    findings: { failures },
    stages: () => [{ targets: hadVersion.map((each) => ({ hadVersion: each })) }],
    waves: () => [],
    work: () => work,
  } as unknown as PlanReading;
}

/** Returns the messages about the reading after those of `before`, without the name of the plan. */
function saidAbout(words: Words, before: Told | undefined = NOTHING_TOLD): string[] {
  return notificationsOf(before, standingOf(PLAN, readingOf(words))).map(({ message }) =>
    message.replace(`${PLAN}: `, ''),
  );
}

const failed = (name: string, message?: string, state: FailedTarget['state'] = 'failed') => ({
  name,
  state,
  cause: message === undefined ? undefined : because('TargetFailed', message),
});

test.each<[string, Words, string]>([
  ['an upgrade', {}, 'the upgrade to v2 has started; 2 nodes'],
  ['an upgrade of one node', { counts: { total: 1 } }, 'the upgrade to v2 has started; 1 node'],
  ['a roll-back', { work: 'roll-back' }, 'the roll-back to v2 has started; 2 nodes'],
  ['a plan without a version', { versions: [] }, 'the upgrade has started; 2 nodes'],
])('the start of %s is told with its work, its version and its nodes', (_name, words, text) => {
  expect(saidAbout(words, { ...NOTHING_TOLD, run: '' })).toEqual([text]);
});

test.each<[string, Words, string]>([
  ['of every node', { counts: { done: 2 } }, 'the upgrade to v2 is done; 2 of 2 nodes done'],
  [
    'of nodes that ran the version already',
    { counts: { done: 2 }, hadVersion: [true, true] },
    'every node ran v2 already before its last attempt; 2 of 2 nodes done',
  ],
  [
    'of nodes of which one ran the version already',
    { counts: { done: 2 }, hadVersion: [true, false] },
    'the upgrade to v2 is done; 2 of 2 nodes done',
  ],
  [
    'without a target',
    { counts: { total: 0 } },
    'ended without an upgrade: there was no target, so nothing was done',
  ],
  [
    'of a roll-back without a target',
    { counts: { total: 0 }, work: 'roll-back' },
    'ended without a roll-back: there was no target, so nothing was done',
  ],
  [
    'with nodes that have several versions',
    {
      counts: { done: 2 },
      end: { phase: 'differs', reason: because('MixedVersions', 'w1 has v1, and w2 has v2') },
    },
    'w1 has v1, and w2 has v2; 2 of 2 nodes done',
  ],
  [
    'without a node, whose reason is known',
    {
      counts: { done: 1, skipped: 1 },
      end: { phase: 'done', reason: because('DoneWithSkipped', 'skipped: w2') },
    },
    'the upgrade to v2 has ended, but not for every node: skipped: w2',
  ],
  [
    'without a node, whose reason is not known',
    { counts: { done: 1, failed: 1 } },
    'the upgrade to v2 has ended, but not for every node: 1 of 2 nodes done, 1 failed',
  ],
])('the end of a run %s is told as it was', (_name, words, text) => {
  expect(saidAbout({ phase: 'done', ...words }, { ...NOTHING_TOLD, failed: 1 })).toEqual([text]);
});

test.each<[string, Words, string]>([
  ['no known cause', { counts: { failed: 2 } }, '2 of 2 nodes failed: 2 nodes failed'],
  [
    'three causes',
    {
      counts: { total: 9, failed: 3 },
      failures: [failed('w1', '404'), failed('w2'), failed('w3', undefined, 'missing')],
    },
    '3 of 9 nodes failed: w1: 404; w2 failed; w3: it does not exist',
  ],
  [
    'four causes',
    {
      counts: { total: 9, failed: 4 },
      failures: ['w1', 'w2', 'w3', 'w4'].map((name) => failed(name, '404')),
    },
    '4 of 9 nodes failed: w1: 404; w2: 404; w3: 404; and others',
  ],
])('failures with %s are told with the first three causes', (_name, words, text) => {
  expect(saidAbout(words)).toEqual([text]);
});

test('the end of a failed run is told with its cause, or else with its failures', () => {
  const failures = [failed('w1', '404')];
  const words: Words = { phase: 'failed', counts: { failed: 1 }, failures };
  expect(saidAbout({ ...words, cause: because('TargetFailed', 'w1 is lost') })).toEqual([
    'ended as failed: w1 is lost',
  ]);
  expect(saidAbout(words)).toEqual(['ended as failed: w1: 404']);
});

test('a long wait is told with its begin, and with what ends it if that is known', () => {
  const wait: Wait = {
    gate: 'node-ready',
    reason: because('NodeNotReady', 'w1 is not Ready'),
    since: later(-LONG_MS - 10_000),
  };
  const begun = `has waited since ${wait.since}: w1 is not Ready`;
  expect(saidAbout({ waits: [wait] })).toEqual([begun]);
  expect(saidAbout({ waits: [{ ...wait, ends: 'it is Ready' }] })).toEqual([
    `${begun}; this ends when it is Ready`,
  ]);
  const told = toldOf(standingOf(PLAN, readingOf({ waits: [wait] })));
  expect(told.waiting).toBe('NodeNotReady');
  expect(saidAbout({ waits: [wait] }, told)).toEqual([]);
});

test('the wait that becomes long first says when to look again', () => {
  const wait = (agoMs: number): Wait => ({
    gate: 'node-ready',
    reason: because('NodeNotReady', 'w1 is not Ready'),
    since: later(-agoMs),
  });
  expect(longAfter([wait(MINUTE), wait(2 * MINUTE)], T0)).toBe(LONG_MS + 10_000 - 2 * MINUTE);
  expect(longAfter([wait(LONG_MS + 10_000)], T0)).toBeUndefined();
});

test('a text is cut only if it has more than 600 characters', () => {
  const message = (length: number): string => {
    const cause = because('TargetFailed', 'x'.repeat(length));
    const [note] = notificationsOf(
      NOTHING_TOLD,
      standingOf(PLAN, readingOf({ phase: 'failed', cause })),
    );
    return note?.message ?? '';
  };
  const head = `${PLAN}: ended as failed: `.length;
  expect(message(600 - head)).toHaveLength(600);
  expect(message(600 - head)).not.toContain('…');
  expect(message(601 - head)).toHaveLength(600);
  expect(message(601 - head)).toMatch(/x…$/);
});

test('each notification has an id of 16 digits, which differs with its event and its time', () => {
  const idsOf = (words: Words): string[] =>
    notificationsOf(NOTHING_TOLD, standingOf(PLAN, readingOf(words))).map(({ id }) => id);
  const ids = [idsOf({ phase: 'done' }), idsOf({ phase: 'failed' })].flat();
  expect(ids).toHaveLength(2);
  expect(new Set(ids).size).toBe(2);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{16}$/);
});

test.each<[string, Words, boolean]>([
  ['began ten minutes ago', { span: { first: later(-10 * MINUTE), last: later(0) } }, true],
  ['began longer ago', { span: { first: later(-10 * MINUTE - 1000), last: later(0) } }, false],
  [
    'ended ten minutes ago',
    { phase: 'done', span: { first: later(-60 * MINUTE), last: later(-10 * MINUTE) } },
    true,
  ],
  [
    'ended longer ago',
    { phase: 'done', span: { first: later(-60 * MINUTE), last: later(-10 * MINUTE - 1000) } },
    false,
  ],
])('the first look at a run that %s', (_name, words, isNews) => {
  const notes = notificationsOf(undefined, standingOf(PLAN, readingOf(words)));
  expect(notes.length > 0).toBe(isNews);
});
