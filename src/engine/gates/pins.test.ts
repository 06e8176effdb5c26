/** Tests which version of a target counts: the version before its attempt, and the version to which a pin binds it. */
import { describe, expect, test } from 'vitest';
import { input } from '../../../test/support/builders/gate-inputs.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import type { KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { later } from '../../../test/support/clock/times.ts';
import type { Observation } from '../model/facts.ts';
import { isSameVersion, pinAgainst, pinOf } from './pins.ts';
import { hadVersionBefore, versionBefore } from './types.ts';

describe('the version of a target before its attempt', () => {
  const stage = buildStage('worker', ['n1'], {
    version: 'v1.37.0+build.0',
    kubernetesVersion: 'v1.37.0',
  });
  const reported: Observation = {
    kind: 'succeeded',
    attempt: later(0),
    since: later(0),
    report: { from: 'v1.37.0' },
  };
  const had = (facts: KnownFacts, more = {}): boolean =>
    hadVersionBefore(input('worker', facts).facts, { ...stage, ...more });

  test('is that of its report, or else that of its record', () => {
    expect(versionBefore({ observation: reported, earlierVersion: 'v1.36.0' })).toBe('v1.37.0');
    expect(versionBefore({ observation: { kind: 'none' }, earlierVersion: 'v1.36.0' })).toBe(
      'v1.36.0',
    );
  });

  test.each<[string, boolean, KnownFacts, object]>([
    ['is unknown', false, {}, {}],
    ['is the version of the plan', true, { earlierVersion: 'v1.37.0+build.0' }, {}],
    ['is the Kubernetes version of the plan', true, { observation: reported }, {}],
    [
      'is the Kubernetes version, and the plan has none',
      false,
      { observation: reported },
      { kubernetesVersion: undefined },
    ],
    [
      'is the Kubernetes version of the plan, but the signal asked for another one',
      false,
      { observation: reported, asked: 'v1.36.9+build.0' },
      {},
    ],
    ['is another version', false, { earlierVersion: 'v1.36.0' }, {}],
    [
      'is the version of a plan that changes no version',
      false,
      { earlierVersion: 'v1.37.0+build.0' },
      { keepsVersion: true },
    ],
  ])('%s: whether the attempt has upgraded nothing is %s', (_title, expected, facts, more) => {
    expect(had(facts, more)).toBe(expected);
  });
});

describe('the pins of a policy', () => {
  const pinned = (version: string, pool = 'a') => ({
    selector: { matchLabels: { pool } },
    version,
  });
  const labels = { pool: 'a' };
  const against = (version: string, ...pins: readonly ReturnType<typeof pinned>[]) =>
    pinAgainst({ pins }, { version }, { labels });

  test.each([
    ['the same version', 'v1.36.0', 'v1.36.0', undefined],
    ['the tag of an image', 'v1.36.0+k3s1', 'v1.36.0-k3s1', undefined],
    ['a build of the version', 'v1.36.0', 'v1.36.0+k3s1', undefined],
    ['another build', 'v1.36.0+k3s1', 'v1.36.0+k3s2', 0],
    ['no build', 'v1.36.0+k3s1', 'v1.36.0', 0],
    ['another version', 'v1.36.0', 'v1.37.0+k3s1', 0],
    ['a text that is no version', 'v1.36.0', 'stable', 0],
    ['a pin that is no version', 'stable', 'v1.36.0+k3s1', 0],
    ['the same text that is no version', 'stable', 'stable', undefined],
  ])('and %s: a pin to %s, a plan for %s', (_title, pin, version, index) => {
    expect(against(version, pinned(pin))?.index).toBe(index);
  });

  test('that select the node count, and contradict each other', () => {
    expect(against('v1.37.0', pinned('v1.36.0', 'b'))).toBeUndefined();
    expect(against('v1.37.0')).toBeUndefined();
    expect(
      against('v1.37.0', pinned('v1.36.0', 'b'), pinned('v1.36.0'), pinned('v1.35.0')),
    ).toEqual({
      index: 1,
      version: 'v1.36.0',
      conflict: 2,
    });
    expect(against('v1.37.0', pinned('v1.37.0'), pinned('v1.37.0+k3s1'))).toMatchObject({
      conflict: 1,
    });
    expect(
      pinAgainst(
        { pins: [pinned('v1.36.0')] },
        { version: 'v1.37.0', keepsVersion: true },
        { labels },
      ),
    ).toBeUndefined();
  });

  test('give a reason unless they contradict each other', () => {
    const stage = buildStage('worker', ['n1'], { version: 'v1.37.0' });
    const { facts } = input('worker', { labels });
    const reasonFor = (...pins: readonly ReturnType<typeof pinned>[]) =>
      pinOf(buildPolicy({ name: 'careful', pins }), stage, { name: 'n1' }, facts);
    expect(reasonFor(pinned('v1.36.0'))).toEqual({
      code: 'Pinned',
      message:
        'n1 is pinned to v1.36.0 by spec.versions.pin[0] of UpgradePolicy careful, and the plan asks for v1.37.0',
    });
    expect(reasonFor(pinned('v1.36.0'), pinned('v1.35.0'))).toBeUndefined();
    expect(reasonFor()).toBeUndefined();
  });

  test('compare versions, not texts', () => {
    expect([
      isSameVersion('1.36.0', 'v1.36.0'),
      isSameVersion('a', 'a'),
      isSameVersion('a', 'b'),
    ]).toEqual([true, true, false]);
  });
});
