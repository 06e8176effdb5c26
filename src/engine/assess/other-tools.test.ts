/** Tests that a plan continues with other nodes while other tools work on a node. */
import { expect, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, type KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import type { RecordedState } from '../model/rollout.ts';

const BUSY: KnownFacts = {
  otherWork: [{ tool: 'Kured', message: 'Kured is rebooting the node', ends: 'it is done' }],
};

function statesAfter(state: RecordedState, coordinate: readonly 'Kured'[]): string[] {
  const stage = buildStage('worker', [
    { ...buildTarget('w1', state), since: later(0) },
    buildTarget('w2'),
  ]);
  const snapshot = buildSnapshot(buildRollout([stage]), { w1: BUSY });
  const { stages } = decide(snapshot, buildPolicy({ coordinate }), T0).record ?? snapshot.rollout;
  return stages.flatMap(({ targets }) => targets.map(({ name, state }) => `${name} ${state}`));
}

test.each<[string, RecordedState, readonly 'Kured'[], string[]]>([
  [
    'a node that waits for a tool lets others start',
    'pending',
    ['Kured'],
    ['w1 pending', 'w2 intended'],
  ],
  ['a chosen node gives its slot back', 'intended', ['Kured'], ['w1 pending', 'w2 intended']],
  ['a policy without coordination waits for nothing', 'pending', [], ['w1 intended', 'w2 pending']],
])('%s', (_title, state, coordinate, expected) => {
  expect(statesAfter(state, coordinate)).toEqual(expected);
});
