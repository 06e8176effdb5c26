/** Checks for tests what one pass of the leader changes in one rollout. */
import { expect, test } from 'vitest';
import type { TargetFacts } from '../../../src/engine/model/facts.ts';
import type { Rollout, Stage } from '../../../src/engine/model/rollout.ts';
import type { EndpointHealth } from '../../../src/engine/model/snapshot.ts';
import type { RolloutPolicy } from '../../../src/engine/policy/rollout-policy.ts';
import { MINUTE, T0 } from '../clock/times.ts';
import { decide } from './decisions.ts';
import { buildPolicy } from './rollout-policies.ts';
import { buildRollout } from './rollouts.ts';
import { buildSnapshot } from './snapshots.ts';

export const POLICY = buildPolicy();

export const NOW = T0 + 10 * MINUTE;

type Facts = Record<string, Partial<TargetFacts>>;

interface Situation {
  readonly stages: readonly Stage[];
  readonly facts?: Facts;
  readonly rollout?: Partial<Rollout>;
  readonly controlPlane?: readonly EndpointHealth[] | 'unasked';
  readonly policy?: Partial<RolloutPolicy>;
  readonly now?: number;
}

/** The result of a pass: the recorded states by the names of the targets, and the state of the rollout. */
type Outcome = Readonly<Record<string, unknown>>;

function outcomeOf({
  stages,
  facts,
  rollout,
  controlPlane,
  policy,
  now = NOW,
}: Situation): Outcome {
  const snapshot = buildSnapshot(buildRollout(stages, rollout), facts, controlPlane);
  const { record, signals } = decide(snapshot, { ...POLICY, ...policy }, now);
  const after = record ?? snapshot.rollout;
  const states = after.stages.flatMap(({ targets }) =>
    targets.map(({ name, state }): [string, unknown] => [name, state]),
  );
  return {
    ...Object.fromEntries(states),
    phase: after.phase,
    ...(after.reason ? { reason: after.reason.code } : {}),
    ...(after.blocked ? { blocked: true } : {}),
    ...(record ? {} : { recorded: 'nothing' }),
    ...(signals.length > 0 ? { signalled: signals.map(({ target }) => target.name) } : {}),
  };
}

export const check = (rows: [string, Situation, Outcome][]): void => {
  test.each(rows)('%s', (_name, situation, outcome) =>
    expect(outcomeOf(situation)).toEqual(outcome),
  );
};

export const running = { phase: 'running' };
