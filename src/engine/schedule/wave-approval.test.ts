/**
 * Tests waves that need an approval: which entries of a NodeRollout approve which wave, and what the plan reports while
 * it waits.
 */

import { describe, expect, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, T0 } from '../../../test/support/clock/times.ts';
import { answered, NEVER, UNASKED, unanswered } from '../model/asked.ts';
import { approvalsIn, type DecisionsOfPeople, runOf } from '../model/decisions-of-people.ts';
import { because } from '../model/reasons.ts';
import type { Snapshot } from '../model/snapshot.ts';

const CANARY = { selector: { matchLabels: { canary: 'true' } } };
const canary = { labels: { canary: 'true' } };
const MANUAL = { needsApproval: true };
const policy = buildPolicy({ name: 'slow', waves: [CANARY, MANUAL] });

const ROLLOUT = buildRollout([
  buildStage(
    'worker',
    [
      buildTarget('w1', 'done', { since: later(0) }),
      buildTarget('w2', 'pending', { since: later(0) }),
      buildTarget('w3', 'pending', { since: later(0) }),
    ],
    { maxInFlight: 9 },
  ),
]);
const RUN = runOf(ROLLOUT);

function decisionsWith(approvals: unknown, more: Partial<DecisionsOfPeople> = {}) {
  const place = { plan: 'table/plan', place: 'ns/table-plan', exists: true };
  return { ...place, approvals: approvalsIn(approvals), accepted: [], ...more };
}

function snapshotWith(decisions: Snapshot['plan']['decisions'], facts = {}): Snapshot {
  return withParts(buildSnapshot(ROLLOUT, { w1: canary, ...facts }), { plan: { decisions } });
}

function started(snapshot: Snapshot, by = policy, now = T0): string[] {
  const { record = snapshot.rollout } = decide(snapshot, by, now);
  return record.stages.flatMap(({ targets }) =>
    targets.filter(({ state }) => state === 'intended').map(({ name }) => name),
  );
}

const entry = { wave: 2, by: 'ada', at: later(0), run: RUN };

describe('what opens wave 2', () => {
  test.each<[string, unknown, boolean]>([
    ['an approval of this run', [entry], true],
    ['an approval beside nonsense', [null, 7, { wave: 'all' }, entry], true],
    ['no approval', [], false],
    ['nothing', undefined, false],
    ['an approval of another wave', [{ ...entry, wave: 1 }], false],
    ['an approval of an earlier run', [{ ...entry, run: `${RUN}/1` }], false],
    ['an approval of an earlier plan', [{ ...entry, run: 'other/id1' }], false],
    ['an approval without a run', [{ wave: 2, by: 'ada' }], false],
    ['an approval without a user', [{ wave: 2, run: RUN }], false],
    ['an approval by nobody', [{ ...entry, by: '' }], false],
    ['the wave as a text', [{ ...entry, wave: '2' }], false],
    ['a wave between two', [{ ...entry, wave: 1.5 }], false],
    ['a list that is none', { 0: entry }, false],
    ['a text', 'wave 2', false],
  ])('%s: %#', (_name, approvals, opens) => {
    expect(started(snapshotWith(answered(decisionsWith(approvals))))).toEqual(
      opens ? ['w2', 'w3'] : [],
    );
  });
});

test('only the approved wave opens, and a wave without `Manual` needs nothing', () => {
  const { waves = [] } = policy;
  const third = buildPolicy({ name: 'slow', waves: [...waves.slice(0, 1), { ...CANARY }, MANUAL] });
  expect(started(snapshotWith(answered(decisionsWith([entry]))), third)).toEqual([]);
  const free = buildPolicy({ name: 'slow', waves: [CANARY] });
  expect(started(snapshotWith(NEVER), free)).toEqual(['w2', 'w3']);
});

test('a node that gets into the wave by its labels does not open it', () => {
  const both = buildPolicy({ name: 'slow', waves: [{ count: 1, ...MANUAL }, MANUAL] });
  expect(
    started(snapshotWith(answered(decisionsWith([{ ...entry, wave: 1 }]))), both),
  ).not.toContain('w3');
});

test('a worker with the label of the control plane is in no wave and needs no approval', () => {
  const labels = { 'node-role.kubernetes.io/control-plane': '' };
  const first = buildPolicy({ name: 'slow', waves: [MANUAL] });
  const facts = { w1: { labels }, w2: { labels } };
  expect(started(snapshotWith(answered(decisionsWith([])), facts), first)).toEqual(['w2']);
});

describe('a plan that waits for an approval says', () => {
  const waitIn = (decisions: Snapshot['plan']['decisions'], by = policy) =>
    decide(snapshotWith(decisions), by, T0).waits.find(({ gate }) => gate === 'waves');

  test('which command approves the wave', () => {
    expect(waitIn(answered(decisionsWith([])))).toMatchObject({
      reason: {
        code: 'WaveNeedsApproval',
        message: 'wave 2 needs approval by UpgradePolicy slow',
      },
      ends: 'somebody approves the wave: refit approve table/plan --wave 2',
    });
  });

  test('that the NodeRollout does not exist yet', () => {
    expect(waitIn(answered(decisionsWith([], { exists: false })))?.reason.message).toBe(
      'wave 2 needs approval by UpgradePolicy slow; the NodeRollout ns/table-plan does not exist yet',
    );
  });

  test('that the leader may not read the NodeRollout', () => {
    const reason = because('CannotDecide', 'could not check: noderollouts is forbidden');
    const decisions = unanswered({ reason, recheckMs: 1000 });
    expect(started(snapshotWith(decisions))).toEqual([]);
    expect(waitIn(decisions)).toMatchObject({
      reason,
      ends: 'the leader can read the approvals, and wave 2 has one',
    });
  });

  test('nothing about an approval while an earlier wave settles', () => {
    const probesOf = (settleMs: number) => {
      const waves = [{ ...CANARY, settleMs }, MANUAL];
      return decide(snapshotWith(UNASKED), buildPolicy({ waves }), T0).probes;
    };
    expect(probesOf(HOUR)).toEqual([]);
    expect(probesOf(0)).toEqual([{ kind: 'decisions' }]);
  });
});
