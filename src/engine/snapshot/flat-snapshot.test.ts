/** Tests that the snapshot in a file of an earlier release gets its parts, and what counts for a field that it lacks. */
import { expect, test } from 'vitest';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { NEVER, UNASKED } from '../model/asked.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { Pace } from '../model/snapshot.ts';
import { type FlatSnapshot, fromFlat } from './flat-snapshot.ts';

const rollout = buildRollout([buildStage('worker', ['w1'])]);
const FLAT: FlatSnapshot = { rollout, facts: new Map() };

test('a field that the file lacks is unknown, never asked, or false', () => {
  const { plan, abilities, cluster, outside, term } = fromFlat(FLAT);
  expect(plan).toMatchObject({ controls: NO_CONTROLS, edits: undefined, decisions: NEVER });
  expect(Object.values(abilities)).toEqual([
    false,
    false,
    false,
    false,
    undefined,
    false,
    undefined,
    false,
  ]);
  expect(cluster).toMatchObject({ controlPlane: UNASKED, components: NEVER, fleet: undefined });
  expect(outside).toMatchObject({ hooks: undefined, budgetPods: NEVER, foreignWork: [] });
  expect(term).toEqual({ failures: undefined, payloadsWatchedMs: undefined, hasRecorded: false });
});

test('each field that the file has gets into its part', () => {
  const found = fromFlat({ ...FLAT, canSkip: true, claim: 'plan', fleet: [], hooks: [] });
  expect(found.abilities.canSkip).toBe(true);
  expect(found.plan.claim).toBe('plan');
  expect([found.cluster.fleet, found.outside.hooks]).toEqual([[], []]);
});

test.each<[string, Partial<FlatSnapshot>, Pace]>([
  [
    'the times of this rollout count before earlier ones',
    { paceMs: 3, usualMs: 2, fastMs: 1, earlierMs: { own: 9 } },
    { kind: 'measured', mostMs: 3, usualMs: 2, fastMs: 1 },
  ],
  [
    'earlier times count otherwise',
    { earlierMs: { own: 9 } },
    { kind: 'earlier', mostMsByStage: { own: 9 } },
  ],
  ['without any times nothing is known', {}, { kind: 'unknown' }],
])('how long targets take: %s', (_title, more, pace) => {
  expect(fromFlat({ ...FLAT, ...more }).pace).toEqual(pace);
});

test('the late facts of a target are completed', () => {
  const facts = new Map([['w1', { ...buildFacts(), occupant: 'plan b' }]]);
  const found = fromFlat({ ...FLAT, facts }).targets.facts.get('w1');
  expect(found).toMatchObject({ exists: true, occupant: 'plan b', otherWork: [] });
});
