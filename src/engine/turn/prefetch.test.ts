/** Tests which waiting targets are asked to prefetch: never more than the limit, and no target that will not start. */

import { expect, test } from 'vitest';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { PrefetchState } from '../model/downloads.ts';
import type { Observation, TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState, Rollout, Stage } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { prefetchesOf } from './prefetch.ts';

interface Options {
  readonly rollout?: Partial<Rollout>;
  readonly more?: SnapshotChanges;
  readonly policy?: Partial<RolloutPolicy>;
}

/**
 * Maps the name of each target to its state, optionally followed by its prefetch state, for example `pending asked`.
 * Names of controllers begin with c.
 */
type Words = Readonly<Record<string, string>>;

const SLOTS = 2;
const RESTARTING: Observation = {
  kind: 'working',
  step: 'Restart',
  part: 'restart',
  attempt: later(0),
  since: later(0),
};

function stagesOf(words: Words): Stage[] {
  const targets = Object.entries(words).map(([name, text]) =>
    buildTarget(name, text.split(' ')[0] as RecordedState),
  );
  const of = (role: 'controller' | 'worker', maxInFlight: number): Stage[] => {
    const own = targets.filter(({ name }) => name.startsWith(role[0] ?? ''));
    return own.length === 0 ? [] : [buildStage(role, own, { maxInFlight })];
  };
  return [...of('controller', 1), ...of('worker', SLOTS)];
}

function lines(
  words: Words,
  { rollout, more, policy }: Options = {},
  facts: Partial<TargetFacts> = {},
): string[] {
  const given = Object.entries(words).map(([name, text]): [string, Partial<TargetFacts>] => {
    const [, prefetch = 'possible'] = text.split(' ') as [string, PrefetchState?];
    const restarts = text.startsWith('intended') ? { observation: RESTARTING } : {};
    return [name, { prefetch, ...restarts, ...facts }];
  });
  const built = buildRollout(stagesOf(words), { phase: 'running', ...rollout });
  const snapshot = withParts(buildSnapshot(built, Object.fromEntries(given)), more);
  const actions = prefetchesOf(assess(snapshot, buildPolicy(policy), T0));
  return actions.map(({ kind, target }) => `${kind} ${target.name}`);
}

const CONTROLLERS = {
  c1: 'intended',
  c2: 'pending',
  c3: 'pending',
  w1: 'pending',
  w2: 'pending',
  w3: 'pending',
};
const LAST = { c1: 'done', c2: 'intended', w1: 'pending', w2: 'pending', w3: 'pending' };

test.each<[string, Words, Options, string[]]>([
  ['nobody before the first starts', { w1: 'pending', w2: 'pending' }, {}, []],
  [
    'one for each that restarts',
    { w1: 'intended', w2: 'pending', w3: 'pending' },
    {},
    ['prefetch w2'],
  ],
  ['the next controller', CONTROLLERS, {}, ['prefetch c2']],
  [
    'behind the last controller as many workers as there are slots',
    LAST,
    {},
    ['prefetch w1', 'prefetch w2'],
  ],
  ['those that were asked count', { ...LAST, w1: 'pending asked' }, {}, ['prefetch w2']],
  ['wherever they are in the list', { ...LAST, w2: 'pending asked', w3: 'pending asked' }, {}, []],
  [
    'all of them, if the policy wishes that',
    LAST,
    { policy: { prefetch: 'all' } },
    ['prefetch w1', 'prefetch w2', 'prefetch w3'],
  ],
  ['none, if the policy wishes that', LAST, { policy: { prefetch: 'none' } }, []],
  [
    'none of a plan that is paused',
    LAST,
    { more: { plan: { controls: { ...NO_CONTROLS, paused: true } } } },
    [],
  ],
  ['none by a paused policy', LAST, { policy: { paused: true } }, []],
  [
    'what the plan has changed is asked anew',
    { ...LAST, w1: 'pending outdated' },
    {},
    ['prefetch w1', 'prefetch w2'],
  ],
  ['nothing is taken from a node whose signal will do that', { w1: 'intended asked' }, {}, []],
  [
    'a node that still waits keeps its download while nobody moves',
    { w1: 'done', w2: 'pending asked' },
    {},
    [],
  ],
  [
    'a node that failed loses its download',
    { w1: 'intended', w2: 'failed asked' },
    {},
    ['end-prefetch w2'],
  ],
])('who fetches ahead: %s', (_what, words, options, wanted) => {
  expect(lines(words, options)).toEqual(wanted);
});

test('not more than 20 nodes fetch ahead at a time, however many slots there are', () => {
  const words = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [`w${index}`, 'pending']),
  );
  const asked = lines({ w: 'intended', ...words }, { policy: { prefetch: 'all' } });
  expect(asked).toHaveLength(20);
});

test('nobody fetches while the others are drained and their files swapped', () => {
  const observation: Observation = { ...RESTARTING, step: 'Cordoning', part: 'drain' };
  expect(lines(LAST, {}, { observation })).toEqual([]);
});

test('nodes that swap their files come first: only what more nodes restart may fetch', () => {
  const rollout = (parts: readonly ('apply' | 'restart')[]): string[] => {
    const moving = parts.map((part, index) => [`w${index}`, { ...RESTARTING, part }] as const);
    const targets = [
      ...moving.map(([name]) => buildTarget(name, 'intended')),
      ...['x', 'y'].map((name) => buildTarget(name)),
    ];
    const facts = Object.fromEntries(moving.map(([name, observation]) => [name, { observation }]));
    const waiting = { x: { prefetch: 'possible' as const }, y: { prefetch: 'possible' as const } };
    const stage = buildStage('worker', targets, { maxInFlight: 3 });
    const snapshot = buildSnapshot(buildRollout([stage], { phase: 'running' }), {
      ...facts,
      ...waiting,
    });
    return prefetchesOf(assess(snapshot, buildPolicy({}), T0)).map(({ target }) => target.name);
  };
  expect([rollout(['restart', 'apply']), rollout(['restart', 'restart', 'apply'])]).toEqual([
    [],
    ['x'],
  ]);
});

test('in the lead time of a plan, before its window: up to 20, though nobody moves', () => {
  const windows = (startMinute: number) => [
    { days: [], startMinute, lengthMs: 3_600_000, timeZone: 'UTC' },
  ];
  const minute = Math.floor((T0 % 86_400_000) / 60_000);
  const early = (inMinutes: number, planLeadMs = 7_200_000): Options => ({
    policy: { planLeadMs, planWindows: windows((minute + inMinutes) % 1440) },
  });
  const words = Object.fromEntries(
    Array.from({ length: 30 }, (_, index) => [`w${index}`, 'pending']),
  );
  expect(lines(words, early(90))).toHaveLength(20);
  expect([lines(words, early(130)), lines(words, early(90, 0)), lines(words, early(0))]).toEqual([
    [],
    [],
    [],
  ]);
});

test('in a lead time of two hours they begin within a minute or so; at other times at once', () => {
  const minute = Math.floor((T0 % 86_400_000) / 60_000);
  const planWindows = [
    { days: [], startMinute: (minute + 100) % 1440, lengthMs: 3_600_000, timeZone: 'UTC' },
  ];
  const asked = (policy: Partial<RolloutPolicy>, state: RecordedState): unknown => {
    const first = buildTarget('w1', state);
    const second = buildTarget('w2', 'pending');
    const facts = { w1: { observation: RESTARTING }, w2: { prefetch: 'possible' as const } };
    const snapshot = buildSnapshot(
      buildRollout([buildStage('worker', [first, second])], { phase: 'running' }),
      facts,
    );
    const [action] = prefetchesOf(assess(snapshot, buildPolicy(policy), T0));
    return action?.kind === 'prefetch' ? action.agent.spreadMs : action;
  };
  expect(asked({ planLeadMs: 7_200_000, planWindows }, 'pending')).toBe(60_000);
  expect(asked({}, 'intended')).toBeUndefined();
});

test('a node at the version already, and one that cannot, are not asked', () => {
  expect(lines(LAST, {}, { isThere: true })).toEqual([]);
  expect(lines(LAST, {}, { prefetch: undefined })).toEqual([]);
});

const WAITING = { w1: 'intended', w2: 'pending asked' };
test.each<[string, Options]>([
  ['paused', { more: { plan: { controls: { ...NO_CONTROLS, paused: true } } } }],
  ['aborted', { more: { plan: { controls: { ...NO_CONTROLS, abort: 'wrong' } } } }],
  ['over', { rollout: { phase: 'failed' } }],
  ['not to be carried out any more', { rollout: { problems: [because('InvalidPlan', 'no')] } }],
  [
    'under a policy that cannot be read',
    { policy: { problems: [because('PolicyUnreadable', 'no')] } },
  ],
  ['under a policy that wishes none', { policy: { prefetch: 'none' } }],
])('when the plan is %s, it is cancelled', (_what, options) => {
  expect(lines(WAITING, options)).toEqual(['end-prefetch w2']);
});
