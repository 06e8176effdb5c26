/** Compares one decision over a whole fleet under a policy with every gate, and under a policy without gates. */
import { DEFAULT_POLICY, type RolloutPolicy } from '../../src/engine/policy/rollout-policy.ts';
import type { CheckResult } from '../../src/health/checks.ts';
import { type SceneSettings, timeDecision } from '../cattle/decisions.ts';
import { median } from '../statistics.ts';

/**
 * The decisions without gates and with gates are measured in turns, so that a machine that becomes slower affects both.
 */
const PAIRS = 5;
const HOUR = 60 * 60_000;
const ZONE = 'topology.kubernetes.io/zone';

export interface GatedDecision {
  /** Milliseconds of CPU time of a decision without gates. `gatedMs` is the CPU time of a decision with gates. */
  readonly plainMs: number;
  readonly gatedMs: number;
  /** The median of the quotients of all pairs. */
  readonly ratio: number;
}

const CHECK = { kind: 'http', name: 'shop', url: 'http://shop.example.com/healthz' } as const;
const PASSING: CheckResult = {
  name: CHECK.name,
  state: 'passing',
  message: 'the answer is 200',
  since: 0,
  at: Date.parse('2026-01-01T00:01:00Z'),
};

/** Every gate allows the upgrade, so that the decision evaluates all gates. */
export const EVERY_GATE: RolloutPolicy = {
  ...DEFAULT_POLICY,
  name: 'every-gate',
  maxFailures: 0,
  maxFailuresPercent: 10,
  maxConsecutiveFailures: 5,
  maxBlocked: 10,
  maxUnavailable: { percent: 20 },
  perDomain: { label: ZONE, limit: { percent: 50 } },
  spread: ZONE,
  order: [ZONE],
  waves: [{ percent: 10, settleMs: 1 }, { percent: 30, maxFailures: { nodes: 3 } }, {}],
  settleMs: 1,
  health: { checks: [CHECK] },
  windows: [{ days: [], startMinute: 0, lengthMs: 24 * HOUR, timeZone: 'Europe/Berlin' }],
  blackouts: [{ from: 0, to: HOUR }],
};

export function measureGatedDecision(targets: number): GatedDecision {
  const gates: SceneSettings = { policy: EVERY_GATE, known: { health: [PASSING] } };
  // The first decisions are not measured, because they compile the code of both cases.
  timeDecision(100);
  timeDecision(100, gates);
  const pairs = Array.from({ length: PAIRS }, () => {
    const plain = timeDecision(targets);
    const gated = timeDecision(targets, gates);
    return { plain, gated, ratio: gated / plain };
  });
  return {
    plainMs: median(pairs.map(({ plain }) => plain)),
    gatedMs: median(pairs.map(({ gated }) => gated)),
    ratio: median(pairs.map(({ ratio }) => ratio)),
  };
}
