/** Tests how long a plan waits before its first node if agents report that they cannot download its files. */
import { expect, test } from 'vitest';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { downloadsPossible } from './downloads-possible.ts';
import { gateInput } from './types.ts';

const BROKEN = { answer: 'impossible', problem: 'it: 404 Not Found', room: 1000 } as const;

/** Returns the verdict after the plan has asked for its files for so many milliseconds. */
function verdictAfter(askedForMs: number, policy: Partial<RolloutPolicy> = {}) {
  const stage = buildStage('worker', ['w1']);
  const rollout = buildRollout([stage]);
  const snapshot = withParts(buildSnapshot(rollout, { w1: { downloads: BROKEN } }), {
    term: { payloadsWatchedMs: askedForMs },
  });
  const target = buildTarget('w1');
  const context = { snapshot, stage, target, policy: buildPolicy(policy), now: T0 };
  return downloadsPossible.evaluate(gateInput(context, 1));
}

test('a plan waits for five minutes if an agent cannot download its file, and says so', () => {
  expect(verdictAfter(4 * MINUTE)).toEqual({
    kind: 'wait',
    reason: {
      code: 'DownloadImpossible',
      message: 'w1 cannot download it: 404 Not Found',
    },
    ends: 'every agent that was asked can download the files; after 5 min (payloads.problemTimeout of an UpgradePolicy), the nodes start anyway. Fix the server, the network path to it, or the plan; agents check again every minute',
    recheckMs: MINUTE,
  });
  expect(verdictAfter(5 * MINUTE).kind).toBe('pass');
});

test.each<[string, number, number, 'wait' | 'pass']>([
  ['24 hours still waits after five minutes', 24 * 60 * MINUTE, 5 * MINUTE, 'wait'],
  ['24 hours starts after that time', 24 * 60 * MINUTE, 24 * 60 * MINUTE, 'pass'],
  ['0s starts at once', 0, 0, 'pass'],
])(
  'a plan whose policy sets problemTimeout to %s',
  (_name, downloadProblemMs, askedForMs, kind) => {
    expect(verdictAfter(askedForMs, { downloadProblemMs }).kind).toBe(kind);
  },
);
