/** Tests that the leader records the attempt of a target before it does anything else, if no record says when it began. */

import { expect, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { Hook } from '../../hooks/rules.ts';
import type { TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import { type Target, withStages } from '../model/rollout.ts';

const NOW = T0 + 10 * MINUTE;
const UNRECORDED: Target = {
  ...buildTarget('w1', 'intended'),
  since: later(0),
  lacksAttempt: true,
};
const WORKING = {
  kind: 'working',
  step: 'Running',
  attempt: later(MINUTE),
  since: later(0),
} as const;
const template = { spec: { containers: [{ name: 'c', image: 'i' }] } };
const action = { kind: 'job', namespace: 'h', template, pinToNode: false, retries: 0 } as const;
const HOOK: Hook = { name: 'backup', when: 'beforeDrain', action, timeoutMs: MINUTE };

function decided(facts: Partial<TargetFacts> = {}) {
  const rollout = buildRollout([buildStage('worker', [UNRECORDED])], { phase: 'running' });
  const snapshot = withParts(buildSnapshot(rollout, { w1: facts }), { outside: { hooks: [] } });
  return decide(snapshot, buildPolicy({ hooks: [HOOK] }), NOW);
}

/** Returns the recorded state and time of each target, and true if its attempt is still unrecorded. */
const recordedBy = ({ record }: ReturnType<typeof decided>): unknown[] =>
  (record ? withStages(record) : []).map(({ target }) => [
    target.state,
    target.since,
    target.lacksAttempt === true,
  ]);

test('an intended target without a recorded attempt gets one before its hooks run', () => {
  expect(recordedBy(decided())).toEqual([['intended', later(10 * MINUTE), false]]);
});

test('the attempt of a target that already works is recorded with the time of its signal', () => {
  expect(recordedBy(decided({ observation: WORKING }))).toEqual([
    ['intended', later(MINUTE), false],
  ]);
});

test('while the API server refuses to write its object, the attempt of a target is not recorded again and again', () => {
  const refusal = { reason: because('TargetRefused', 'w1: refused'), recheckMs: 1000 };
  for (const facts of [{ refusal }, { refusal, observation: WORKING }]) {
    const { record, signals } = decided(facts);
    expect([record, signals]).toEqual([undefined, []]);
  }
});
