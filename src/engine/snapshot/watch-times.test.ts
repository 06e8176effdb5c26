/** Tests how long each report of a target, and the attempt of the report, has been watched. */
import { expect, test } from 'vitest';
import { working } from '../../../test/support/builders/observations.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE } from '../../../test/support/clock/times.ts';
import type { Observation } from '../model/facts.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import { targetTimes, watchTimes } from './watch-times.ts';

const download = working('Downloading');
const restart = working('Restart');
const another = working('Restart', later(MINUTE));

test.each<[string, (readonly [state: RecordedState, observation: Observation])[], number[]]>([
  [
    'says the same',
    [
      ['intended', restart],
      ['intended', restart],
      ['intended', restart],
    ],
    [2, 2],
  ],
  [
    'goes on to its next step',
    [
      ['intended', download],
      ['intended', download],
      ['intended', restart],
    ],
    [0, 2],
  ],
  [
    'begins another attempt',
    [
      ['intended', restart],
      ['intended', restart],
      ['intended', another],
    ],
    [0, 0],
  ],
  [
    'is not recorded yet',
    [
      ['pending', restart],
      ['pending', restart],
    ],
    [1, 0],
  ],
  [
    'has just been recorded',
    [
      ['pending', restart],
      ['pending', restart],
      ['intended', restart],
    ],
    [2, 0],
  ],
  [
    'was recorded',
    [
      ['pending', restart],
      ['intended', restart],
      ['intended', restart],
    ],
    [2, 1],
  ],
  [
    'has failed, and is tried again',
    [
      ['intended', restart],
      ['failed', restart],
      ['intended', restart],
    ],
    [2, 0],
  ],
])(
  'how long this leader has watched a target that %s',
  (_name, looks, [watched = 0, followed = 0]) => {
    const watch = targetTimes();
    const seen = looks.map(([state, observation], index) =>
      watch(buildTarget('w1', state), observation, index * MINUTE),
    );
    expect(seen.at(-1)).toEqual({ watchedMs: watched * MINUTE, followedMs: followed * MINUTE });
  },
);

test('a plan is watched since it asks for the same payloads, whatever its nodes say', () => {
  let now = 0;
  const times = watchTimes({ monotonic: () => now });
  const rollout = (url: string, uid = 'uid'): Rollout => {
    const stage = { ...buildStage('worker', ['w1']), payloads: { 'linux-amd64': { url } } };
    const { source, ...rest } = buildRollout([stage]);
    return { ...rest, source: { ...source, uid } };
  };
  const watched = (url: string, uid?: string, policy = {}): number => {
    now += MINUTE;
    return times.watchPayloads(rollout(url, uid), policy) / MINUTE;
  };
  expect(['a', 'a', 'a', 'b', 'b'].map((url) => watched(url))).toEqual([0, 1, 2, 0, 1]);
  expect([
    watched('b', 'other'),
    watched('b'),
    watched('b', 'uid', { requireHttps: true }),
  ]).toEqual([0, 3, 0]);
});
