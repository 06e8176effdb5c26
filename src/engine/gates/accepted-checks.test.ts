/** Tests accepted risks: which entries of a NodeRollout allow a plan to continue although a health check fails. */

import { describe, expect, test } from 'vitest';
import { input, resting } from '../../../test/support/builders/gate-inputs.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import type { CheckResult } from '../../health/checks.ts';
import { answered, NEVER, UNASKED, unanswered } from '../model/asked.ts';
import { acceptancesIn } from '../model/decisions-of-people.ts';
import { because } from '../model/reasons.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { healthy, healthyAfter } from './healthy.ts';

const RUN = input('worker').run;
const checks = ['one', 'two'].map((name) => ({ kind: 'daemonSets', name, pods: 'all' }) as const);
const policy = buildPolicy({ name: 'careful', health: { checks } });
const result = (name: string, state: CheckResult['state']) =>
  ({ name, state, message: 'x', since: 0, at: T0 }) as const;
const FAILING = [result('one', 'failing'), result('two', 'passing')];
const entry = { check: 'one', by: 'ada', run: RUN };

function verdictWith(accepted: unknown, health: readonly CheckResult[] = FAILING) {
  const place = { plan: 'table/plan', place: 'ns/table-plan', exists: true };
  const decisions = answered({
    ...place,
    approvals: [],
    accepted: acceptancesIn(accepted),
  });
  return healthy.evaluate(
    withParts(input('worker'), {
      policy,
      outside: { health },
      plan: { decisions },
    }),
  );
}

describe('a failing check', () => {
  test.each<[string, unknown, 'pass' | 'wait']>([
    ['accepted for this run', [entry], 'pass'],
    ['accepted until later', [{ ...entry, until: later(1000) }], 'pass'],
    ['accepted until now', [{ ...entry, until: later(0) }], 'wait'],
    ['accepted until nonsense', [{ ...entry, until: 'tomorrow' }], 'wait'],
    ['accepted for another run', [{ ...entry, run: `${RUN}/2` }], 'wait'],
    ['another check is accepted', [{ ...entry, check: 'two' }], 'wait'],
    ['accepted by nobody', [{ ...entry, by: '' }], 'wait'],
    ['accepted without a run', [{ check: 'one', by: 'ada' }], 'wait'],
    ['nonsense', [null, 3, 'one', { check: 1 }], 'wait'],
  ])('%s', (_name, accepted, kind) => {
    expect(verdictWith(accepted).kind).toBe(kind);
  });
});

test('a check that nobody accepted still blocks beside an accepted one', () => {
  const health = [result('one', 'failing'), result('two', 'failing')];
  expect(verdictWith([entry], health)).toMatchObject({
    reason: { code: 'HealthCheckFailing' },
    ends: 'the check passes again, or somebody accepts the failure: refit accept table/plan --check two',
  });
});

test('a check without an answer can be accepted, too', () => {
  const health = [result('one', 'unknown'), result('two', 'passing')];
  expect([verdictWith([], health).kind, verdictWith([entry], health).kind]).toEqual([
    'wait',
    'pass',
  ]);
});

test('the verifier after an upgrade takes an accepted check as passing', () => {
  const place = { plan: 'table/plan', place: 'ns/table-plan', exists: true, approvals: [] };
  const decisions = answered({ ...place, accepted: [entry] });
  const verdict = healthyAfter.evaluate(
    withParts(resting(undefined, T0), {
      policy,
      outside: { health: FAILING },
      plan: { decisions },
    }),
  );
  expect(verdict.kind).toBe('pass');
});

test('nothing fails for good before the acceptances are read, and without them the check counts', () => {
  const asked = (decisions: Snapshot['plan']['decisions']) =>
    healthy.evaluate(
      withParts(input('worker'), {
        policy,
        outside: { health: FAILING },
        plan: { decisions },
      }),
    );
  expect(asked(UNASKED)).toMatchObject({ probe: { kind: 'decisions' }, since: undefined });
  const denied = unanswered({ reason: because('CannotDecide', 'forbidden'), recheckMs: 1 });
  expect(asked(denied)).toEqual(asked(NEVER));
  expect(asked(NEVER)).toMatchObject({ kind: 'wait', since: later(-T0) });
});
