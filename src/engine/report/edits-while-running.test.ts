/**
 * Proves that each edit of a running plan is reported once. The report says which part of the edit takes effect and for
 * which targets.
 */

import { expect, test } from 'vitest';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import { because } from '../model/reasons.ts';
import type { Rollout, Stage } from '../model/rollout.ts';
import { editMemory } from './edits-while-running.ts';
import type { Turn } from './turn.ts';

const TARGETS = [
  buildTarget('w1', 'done'),
  buildTarget('w2', 'intended'),
  buildTarget('w3', 'pending'),
  buildTarget('w4', 'pending'),
];
const BEFORE = { version: 'v1.36.3', maxInFlight: 1, forced: false, command: 0 };

function running(stage: Partial<Stage> = {}, more: Partial<Rollout> = {}): Rollout {
  const stages = [{ ...buildStage('worker', TARGETS), ...BEFORE, ...stage }];
  return buildRollout(stages, { phase: 'running', ...more });
}

function turnOf(rollout: Rollout, generation: number, canIgnoreEdits = false): Turn {
  const snapshot = withParts(buildSnapshot(rollout), { abilities: { canIgnoreEdits } });
  const plan = { apiVersion: 'v1', kind: 'Plan', metadata: { name: 'plan', generation } };
  return { plan, assessment: assess(snapshot, buildPolicy(), T0) };
}

test.each<[string, Rollout, string]>([
  [
    'the version',
    running({ version: 'v1.36.4' }),
    'this takes effect: workers of spec.commands[0]: version v1.36.4 instead of v1.36.3, for w3, w4',
  ],
  [
    'the downloads and forceupdate',
    running({ payloads: { 'linux-amd64': { url: 'https://example.com/other' } }, forced: true }),
    'this takes effect: workers of spec.commands[0]: other downloads, forceupdate: true, for w3, w4',
  ],
  [
    'the limit',
    running({ maxInFlight: 3 }),
    'this takes effect: workers of spec.commands[0]: 3 at a time instead of 1',
  ],
  ['the nodes', running(), 'the edit takes no effect: a plan keeps the nodes that it started with'],
  [
    'the id',
    running({}, { editedId: 'id2' }),
    'the edit takes no effect: a plan keeps the nodes that it started with; this run is still run-1, and only a later run gets the id id2',
  ],
  [
    'a field, so that the plan is invalid',
    running({}, { problems: [because('InvalidPlan', 'spec.id is empty')] }),
    'no node starts until it is corrected: spec.id is empty',
  ],
  [
    'a plan that ignores edits',
    running({}, { ignoresEdits: true }),
    'the edit takes no effect before the plan has ended, because the policy has edits.whileRunning: Ignore',
  ],
])('the Event about an edit of %s says what the edit changes', (_title, after, effect) => {
  const edits = editMemory();
  expect(edits.at('plan', turnOf(running(), 1, true))).toBeUndefined();
  const expected = because('EditedWhileRunning', `edited while it runs; ${effect}`);
  expect(edits.at('plan', turnOf(after, 2, true))).toEqual(expected);
  expect(edits.at('plan', turnOf(after, 2, true))).toBeUndefined();
});

test('an edit after every node has started changes none of them', () => {
  const edits = editMemory();
  const started = { targets: [buildTarget('w1', 'intended')] };
  edits.at('plan', turnOf(running(started), 1, true));
  expect(edits.at('plan', turnOf(running({ ...started, version: 'v1.36.4' }), 2, true))).toEqual(
    because(
      'EditedWhileRunning',
      'edited while it runs; this takes effect: workers of spec.commands[0]: version v1.36.4 instead of v1.36.3, for no node, because all nodes have started',
    ),
  );
});

test('an edit of a stage without targets takes no effect', () => {
  const edits = editMemory();
  edits.at('plan', turnOf(running({ targets: [] }), 1, true));
  const after = running({ targets: [], version: 'v1.36.4', maxInFlight: 3 });
  expect(edits.at('plan', turnOf(after, 2, true))?.message).toBe(
    'edited while it runs; the edit takes no effect: a plan keeps the nodes that it started with',
  );
});

test.each<[string, Rollout, boolean]>([
  ['that has ended', running({}, { phase: 'done' }), true],
  ['of a dialect whose plans may be edited', running({ version: 'v1.36.4' }), false],
])('of a plan %s, nothing is reported', (_title, after, can) => {
  const edits = editMemory();
  edits.at('plan', turnOf(running(), 1, can));
  expect(edits.at('plan', turnOf(after, 2, can))).toBeUndefined();
});

test('an edit of several stages is described for each of them, and a new stage for nobody', () => {
  const stageOf = (command: number, version: string): Stage => ({
    ...buildStage('worker', ['w1'], { command }),
    version,
    maxInFlight: 1,
  });
  const edits = editMemory();
  const before = buildRollout([stageOf(0, 'v1'), stageOf(1, 'v1')], { phase: 'running' });
  const stages = [stageOf(0, 'v2'), stageOf(1, 'v2'), stageOf(2, 'v2')];
  edits.at('plan', turnOf(before, 1, true));
  expect(edits.at('plan', turnOf({ ...before, stages }, 2, true))?.message).toBe(
    'edited while it runs; this takes effect: workers of spec.commands[0]: version v2 instead of v1, for w1; workers of spec.commands[1]: version v2 instead of v1, for w1',
  );
});

test('the id of a later run is told only when it is edited', () => {
  const edits = editMemory();
  edits.at('plan', turnOf(running({}, { editedId: 'id2' }), 1, true));
  const after = running({ maxInFlight: 3 }, { editedId: 'id2' });
  expect(edits.at('plan', turnOf(after, 2, true))?.message).toBe(
    'edited while it runs; this takes effect: workers of spec.commands[0]: 3 at a time instead of 1',
  );
});

test('an edit between two runs of a plan is not an edit of a running plan', () => {
  const edits = editMemory();
  edits.at('plan', turnOf(running(), 1, true));
  edits.at('plan', turnOf(running({}, { phase: 'done' }), 1, true));
  expect(edits.at('plan', turnOf(running({ maxInFlight: 3 }), 2, true))).toBeUndefined();
});
