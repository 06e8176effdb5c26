/** Tests which reason each failed target has: that of its node, that of the rollout, or that which was remembered. */

import { expect, test } from 'vitest';
import { failed, succeeded } from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, T0 } from '../../../test/support/clock/times.ts';
import type { TargetFacts } from '../model/facts.ts';
import { runNameOf } from '../model/failures.ts';
import { because, type Reason } from '../model/reasons.ts';
import { targetsIn } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { advance } from './advance.ts';
import { assess } from './assess.ts';
import { failureOf, failuresDecided } from './target-failures.ts';

const TOO_MANY = because('HealthCheckFailing', 'the health check errors fails: 0.1, above 0.05');

function snapshotOf(
  reason?: Reason,
  facts: Partial<TargetFacts> = {},
  failures?: object,
): Snapshot {
  const stage = buildStage('worker', [buildTarget('w1', 'failed'), buildTarget('w10', 'failed')]);
  const rollout = buildRollout([stage], { phase: 'failed', reason });
  const remembered = { run: runNameOf(rollout), reasons: { w1: TOO_MANY }, ...failures };
  return withParts(buildSnapshot(rollout, { w1: { observation: succeeded(), ...facts } }), {
    term: { failures: remembered },
  });
}

const OTHER = because('DeadlineExceeded', 'w10 did not report within its deadline');

test.each<[string, Snapshot, string | undefined]>([
  [
    'the words of its node come first',
    snapshotOf(OTHER, { observation: failed('FailedDownload: 404') }),
    'TargetFailed: FailedDownload: 404',
  ],
  [
    'the leader gave the target up, and wrote its reason there',
    snapshotOf(because('DrainTooLong', 'w1 was not drained within 1 min'), {
      observation: failed('w1 was not drained within 1 min'),
    }),
    'DrainTooLong: was not drained within 1 min',
  ],
  [
    'the reason of the rollout counts if it is about the target',
    snapshotOf(because('NodeNotReady', 'node w1 is not Ready')),
    'NodeNotReady: is not Ready',
  ],
  [
    'a reason about another target whose name begins alike does not count',
    snapshotOf(OTHER),
    `HealthCheckFailing: ${TOO_MANY.message}`,
  ],
  [
    'what was remembered about another run does not count',
    snapshotOf(OTHER, {}, { run: 'uid/other' }),
    undefined,
  ],
  ['an unknown reason stays unknown', snapshotOf(OTHER, {}, { reasons: {} }), undefined],
])('why a target failed: %s', (_name, snapshot, expected) => {
  const [w1] = targetsIn(snapshot.rollout, 'failed');
  const found = w1 && failureOf(snapshot, w1);
  expect(found && `${found.code}: ${found.message}`).toBe(expected);
});

test('two nodes that a check refuses in one turn keep their own reasons, and the rollout names the first', () => {
  const moving = ['w1', 'w2'].map((name) => buildTarget(name, 'intended'));
  const rollout = buildRollout([buildStage('worker', moving, { maxInFlight: 2 })]);
  const unready = {
    observation: succeeded(),
    ready: false,
    readySince: new Date(T0).toISOString(),
  };
  const facts = { ...unready, watchedMs: HOUR, followedMs: HOUR };
  const snapshot = buildSnapshot(rollout, { w1: facts, w2: facts });
  const assessment = assess(snapshot, buildPolicy({ maxFailures: 2 }), T0 + HOUR);
  const { reasons } = failuresDecided(assessment);
  expect(Object.entries(reasons).map(([name, { code }]) => `${name} ${code}`)).toEqual([
    'w1 NodeNotReady',
    'w2 NodeNotReady',
  ]);
  expect(advance(assessment).reason?.message).toBe('node w1 is not Ready');
});
