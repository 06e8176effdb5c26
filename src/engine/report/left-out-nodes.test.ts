/** Tests that each node that is left out is reported once, and again if the reason changes. */

import { expect, test } from 'vitest';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildFacts, buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { type Assessment, assess } from '../assess/assess.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { leftOutMemory } from './left-out-nodes.ts';

function assessmentOf(names: readonly string[], policy: Partial<RolloutPolicy> = {}): Assessment {
  const rollout = buildRollout([buildStage('worker', ['w1'])], { phase: 'running' });
  const joined = names.map((name) => ({
    stage: '0/workers',
    role: 'worker' as const,
    target: buildTarget(name),
  }));
  const snapshot = buildSnapshot(rollout);
  const get = () => buildFacts({ platform: 'linux-s390x' });
  const targets = { ...snapshot.targets, get };
  return assess(withParts(snapshot, { targets, plan: { joined } }), buildPolicy(policy), T0);
}

test('a node is reported once, and again for another reason or after it was away', () => {
  const memory = leftOutMemory();
  const told = (assessment: Assessment) =>
    memory.at('plan', assessment)?.message.match(/^\S+|same holds for .*$|is linux-s390x/g);
  expect(told(assessmentOf([]))).toBeUndefined();
  expect(told(assessmentOf(['n1', 'n2']))).toEqual(['n1', 'same holds for n2']);
  expect(told(assessmentOf(['n1', 'n2']))).toBeUndefined();
  expect(told(assessmentOf(['n1', 'n2', 'n3']))).toEqual(['n3']);
  expect(told(assessmentOf(['n3'], { includesNew: true }))).toEqual(['n3', 'is linux-s390x']);
  memory.forget('plan');
  expect(told(assessmentOf(['n3'], { includesNew: true }))).toEqual(['n3', 'is linux-s390x']);
});
