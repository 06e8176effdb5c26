/** Tests what the log says about a node that the leader lets continue, with and without an agent. */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import { answered } from '../model/asked.ts';
import type { NodeAction } from '../model/decision.ts';
import type { NodeView, TargetFacts } from '../model/facts.ts';
import { actionMessage } from './action-message.ts';

const NODE: NodeView = {
  name: 'n1',
  unschedulable: true,
  cordonOwner: `plan-uid/${later(0)}/Plan`,
  taintOwner: undefined,
};
const AGENT = { agent: { ours: true, title: 'Refit 1.0.0' } };

/** Returns the message about the acknowledgement of a target that waits for its drain or its uncordon. */
function messageFor(waitsFor: 'drain' | 'uncordon', facts: Partial<TargetFacts>): string {
  const stage = buildStage('worker', [buildTarget('w1', 'intended')]);
  const [target = buildTarget('w1')] = stage.targets;
  const snapshot = buildSnapshot(buildRollout([stage]), {
    w1: {
      drainDelegation: answered(true),
      drain: { kind: 'drained', since: T0 },
      observation: {
        kind: 'working',
        step: waitsFor === 'drain' ? 'Cordoning' : 'UnCordoning',
        attempt: later(0),
        since: later(0),
        waitsFor,
      },
      node: NODE,
      ...facts,
    },
  });
  const assessment = assess(snapshot, buildPolicy(), T0);
  const { nodeAction } = assessment.of(stage, target);
  return nodeAction ? actionMessage(assessment, nodeAction) : 'no action';
}

test.each([
  ['drain', AGENT, 'w1 is drained; its agent may continue'],
  ['drain', {}, 'w1 is drained; its work may continue'],
  ['uncordon', AGENT, 'node uncordoned; its agent may continue'],
  ['uncordon', {}, 'node uncordoned'],
  ['uncordon', { ...AGENT, node: undefined }, 'w1 has no Node to uncordon; its agent may continue'],
  ['uncordon', { node: undefined }, 'w1 has no Node to uncordon; its work may continue'],
] as const)('the log names an agent only where one acts: %s %j', (waitsFor, facts, message) => {
  expect(messageFor(waitsFor, facts)).toBe(message);
});

const WORKERS = buildStage('worker', [buildTarget('w1', 'intended')]);
const [W1 = buildTarget('w1')] = WORKERS.targets;
const OF = { stage: WORKERS, target: W1, node: 'n1' } as const;
const LEFT = { kind: 'clean-up', ...OF, taint: true } as const;

test.each<[NodeAction, string]>([
  [{ kind: 'cordon', ...OF, owner: 'o' }, 'node cordoned'],
  [
    { kind: 'drain', ...OF, options: { localData: 'evict', unmanagedPods: 'evict' } },
    'drain started',
  ],
  [{ kind: 'taint', ...OF }, 'node tainted'],
  [{ ...LEFT, cordon: true }, 'node uncordoned'],
  [{ ...LEFT, cordon: false }, 'taint removed from node'],
])('the log has its own words for each kind of action: %j', (nodeAction, message) => {
  const assessment = assess(buildSnapshot(buildRollout([WORKERS])), buildPolicy(), T0);
  expect(actionMessage(assessment, nodeAction)).toBe(message);
});
