/** Tests which targets are asked for the download that they need before their cordon, and which requests end. */
import { expect, test } from 'vitest';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, type KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { RequiredDownload } from '../model/downloads.ts';
import type { Rollout, Stage, Target } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { requiredDownloadsOf } from './required-downloads.ts';

const UNASKED: RequiredDownload = { kind: 'unasked' };
const ASKED: RequiredDownload = { kind: 'asked' };
const FAILED: RequiredDownload = { kind: 'failed', problem: 'no route', since: later(0) };

interface Scene {
  readonly downloads: Readonly<Record<string, RequiredDownload | undefined>>;
  readonly facts?: Readonly<Record<string, KnownFacts>>;
  readonly intended?: readonly string[];
  readonly stage?: Partial<Stage>;
  readonly rollout?: Partial<Rollout>;
  readonly parts?: SnapshotChanges;
  readonly policy?: Partial<RolloutPolicy>;
  readonly now?: number;
}

/** Returns the actions of the turn, as `ask w1` and `end w1`. */
function actionsOf({ downloads, facts = {}, intended = [], ...more }: Scene): string[] {
  const { stage: ofStage, rollout, parts, policy, now = T0 } = more;
  const targets = Object.keys(downloads).map(
    (name): Target => buildTarget(name, intended.includes(name) ? 'intended' : 'pending'),
  );
  const stage = buildStage('worker', targets, { maxInFlight: 2, ...ofStage });
  const known = Object.fromEntries(
    Object.entries(downloads).map(([name, requiredDownload]): [string, KnownFacts] => [
      name,
      { requiredDownload, ...facts[name] },
    ]),
  );
  const snapshot = withParts(
    buildSnapshot(buildRollout([stage], rollout), known),
    { abilities: { mustDownload: true } },
    parts,
  );
  return requiredDownloadsOf(assess(snapshot, buildPolicy(policy), now)).map(
    ({ kind, target }) => `${kind === 'prefetch' ? 'ask' : 'end'} ${target.name}`,
  );
}

const UNREADY = Object.fromEntries(
  ['w1', 'w2', 'w3', 'w4'].map((name) => [name, { ready: false }]),
);
const FOUR = { w1: UNASKED, w2: UNASKED, w3: UNASKED, w4: UNASKED };
const MANY = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`w${index}`, UNASKED]));

test.each<[string, Scene, string[]]>([
  ['as many as may be at work are asked', { downloads: FOUR }, ['ask w1', 'ask w2']],
  [
    'up to twenty are asked with `All`',
    { downloads: MANY, policy: { prefetch: 'all' } },
    Array.from({ length: 20 }, (_, index) => `ask w${index}`),
  ],
  [
    'up to twenty are asked, however many may be at work',
    { downloads: MANY, stage: { maxInFlight: 25 } },
    Array.from({ length: 20 }, (_, index) => `ask w${index}`),
  ],
  ['one that downloads is not asked again', { downloads: { ...FOUR, w1: ASKED } }, ['ask w2']],
  [
    'one that has the payload is not asked',
    { downloads: { ...FOUR, w1: { kind: 'done' } }, intended: ['w1'] },
    ['ask w2', 'ask w3'],
  ],
  [
    'one after a target whose download failed is asked, too',
    { downloads: { ...FOUR, w1: FAILED } },
    ['ask w2', 'ask w3'],
  ],
  [
    'one that somebody holds is left out',
    { downloads: FOUR, facts: { w1: { hold: { by: 'ann' } } } },
    ['ask w2', 'ask w3'],
  ],
  [
    'one that is pinned to another version is left out',
    {
      downloads: FOUR,
      facts: { w1: { labels: { pool: 'a' } } },
      policy: { pins: [{ selector: { matchLabels: { pool: 'a' } }, version: 'v1.30.0' }] },
    },
    ['ask w2', 'ask w3'],
  ],
  [
    'one with a request for another payload is asked anew',
    { downloads: { w1: { kind: 'outdated' } } },
    ['end w1'],
  ],
  [
    'while a node works, the next are asked',
    { downloads: { w0: undefined, ...FOUR }, intended: ['w0'] },
    ['ask w1', 'ask w2'],
  ],
])('of the targets that need a download, %s', (_title, scene, expected) => {
  expect(actionsOf(scene)).toEqual(expected);
});

test('a failed download ends after its pause, so that it is asked for again', () => {
  const downloads = { w1: FAILED };
  expect(actionsOf({ downloads, now: T0 + MINUTE - 1 })).toEqual([]);
  expect(actionsOf({ downloads, now: T0 + MINUTE })).toEqual(['end w1']);
});

test('failed and running downloads together are twenty at most', () => {
  const failing = Object.fromEntries(
    Array.from({ length: 19 }, (_, index) => [`f${index}`, FAILED]),
  );
  expect(actionsOf({ downloads: { ...failing, ...MANY }, policy: { prefetch: 'all' } })).toEqual([
    'ask w0',
  ]);
  const asked = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`a${index}`, ASKED]));
  expect(actionsOf({ downloads: { ...asked, ...MANY }, policy: { prefetch: 'all' } })).toEqual([]);
});

test('of many failed downloads, forty targets are looked at', () => {
  const failing = Object.fromEntries(
    Array.from({ length: 45 }, (_, index) => [`f${index}`, FAILED]),
  );
  const ended = actionsOf({ downloads: failing, stage: { maxInFlight: 1 }, now: T0 + MINUTE });
  expect(ended.length).toBeGreaterThanOrEqual(40);
});

test.each<[string, Partial<Scene>]>([
  ['the dialect needs no download', { parts: { abilities: { mustDownload: false } } }],
  ['the plan does not run', { rollout: { phase: 'new' } }],
  ['the plan is paused', { policy: { paused: true } }],
  ['the policy wants no download ahead', { policy: { prefetch: 'none' } }],
  ['the plan is aborted', { parts: { plan: { controls: { ...NO_CONTROLS, abort: 'ann' } } } }],
  ['something else keeps each target from starting', { facts: UNREADY }],
  ['no stage is left', { downloads: {} }],
])('nobody is asked while %s', (_title, more) => {
  expect(actionsOf({ downloads: FOUR, ...more })).toEqual([]);
});
