/** Tests properties that every decision has, for any record and any observation. */

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  arbitrarySituation,
  type Situation,
} from '../../../test/support/builders/arbitrary-snapshots.ts';
import type { Decision } from '../../../test/support/builders/decisions.ts';
import { decide } from '../../../test/support/builders/decisions.ts';
import { factsOf } from '../gates/types.ts';
import { answerOf } from '../model/asked.ts';
import {
  isFinal,
  isSettled,
  type RecordedState,
  type Rollout,
  type Stage,
  type Target,
  targetsIn,
} from '../model/rollout.ts';
import { toRecord, withReasonRead } from '../reasons/recorded.ts';
import { snapshotFrom, storedSnapshot } from '../snapshot/turn-json.ts';

const RUNS = { numRuns: 250 };

/** Returns the rollout as the next turn reads it from its record. */
function asRead(rollout: Rollout): Rollout {
  const { reason } = rollout;
  return withReasonRead({ ...rollout, reason: reason && toRecord(reason) });
}

/**
 * Returns the situation, and the situation after its decision is recorded. The signals are sent in the second
 * situation.
 */
function withNext(situation: Situation): [Situation, Decision][] {
  const { snapshot, policy, now } = situation;
  const decision = decide(snapshot, policy, now);
  if (!decision.record) return [[situation, decision]];
  const next = { ...situation, snapshot: { ...snapshot, rollout: asRead(decision.record) } };
  return [
    [situation, decision],
    [next, decide(next.snapshot, policy, now)],
  ];
}

function property(name: string, holds: (situation: Situation, decision: Decision) => void): void {
  test(name, () => {
    fc.assert(
      fc.property(arbitrarySituation(), (situation) => {
        for (const [each, decision] of withNext(situation)) holds(each, decision);
      }),
      RUNS,
    );
  });
}

/**
 * Returns the targets that this decision itself starts. Targets that were already signalled, and are only adopted, are
 * not included.
 */
function startedBy(
  { snapshot }: Situation,
  { record }: Decision,
): { stage: Stage; target: Target }[] {
  const before = new Map(
    targetsIn(snapshot.rollout, 'pending').map((target) => [target.key, target]),
  );
  return (record?.stages ?? []).flatMap((stage) =>
    stage.targets
      .filter(({ key, state }) => state === 'intended' && before.has(key))
      .filter((target) => factsOf(snapshot, target).observation.kind === 'none')
      .map((target) => ({ stage, target })),
  );
}

function failuresIn(rollout: Rollout): number {
  return new Set(targetsIn(rollout, 'failed', 'missing', 'unsupported').map(({ name }) => name))
    .size;
}

test('the generated snapshots cover every case of the properties', () => {
  const situations = fc.sample(arbitrarySituation(), { numRuns: 500, seed: 1 }).flatMap(withNext);
  const seen = situations.map(([situation, decision]) => {
    const { snapshot } = situation;
    const { record, signals, waits } = decision;
    const started = startedBy(situation, decision);
    return {
      starts: started.length > 0,
      startsSeveral: started.length > 1,
      startsLater: started.some(({ stage }) => stage.id !== snapshot.rollout.stages[0]?.id),
      signals: signals.length > 0,
      waits: waits.length > 0 && !record,
      done: record?.phase === 'done',
      failed: record?.phase === 'failed',
      incomplete: record?.phase === 'incomplete',
      invalid: record?.phase === 'invalid',
      ended: isFinal(snapshot.rollout),
    };
  });
  const counts = Object.keys(seen[0] ?? {}).map((sort): [string, number] => [
    sort,
    seen.filter((each) => each[sort as keyof typeof each]).length,
  ]);
  expect(counts.filter(([, count]) => count < 10)).toEqual([]);
});

describe('a decision', () => {
  property('is the same when it is taken again', ({ snapshot, policy, now }, first) => {
    const copy = snapshotFrom(structuredClone(storedSnapshot(snapshot)));
    expect(decide(copy, policy, now)).toEqual(first);
  });

  test('does not change its input', () => {
    fc.assert(
      fc.property(arbitrarySituation(), ({ snapshot, policy, now }) => {
        const copy = structuredClone(storedSnapshot(snapshot));
        decide(snapshot, policy, now);
        expect(storedSnapshot(snapshot)).toEqual(copy);
      }),
      RUNS,
    );
  });

  property('records or signals, never both', (_situation, { record, signals }) => {
    expect(record !== undefined && signals.length > 0).toBe(false);
  });

  property(
    'is complete: on what it has recorded there is nothing more to record',
    ({ snapshot, policy, now }, { record }) => {
      const again = decide({ ...snapshot, rollout: record ?? snapshot.rollout }, policy, now);
      expect(again.record).toBeUndefined();
    },
  );

  property(
    'leaves a rollout that has ended alone',
    ({ snapshot }, { record, signals, waits, recheckAfterMs }) => {
      if (!isFinal(snapshot.rollout)) return;
      expect({ record, signals, waits, recheckAfterMs }).toEqual({ signals: [], waits: [] });
    },
  );

  property(
    'never asks to be taken again at once where there is nothing to do',
    (_situation, decision) => {
      if (decision.record || decision.signals.length > 0 || decision.probes.length > 0) return;
      expect(decision.recheckAfterMs ?? Number.POSITIVE_INFINITY).toBeGreaterThan(0);
    },
  );

  property(
    'explains itself: as long as the rollout runs, somebody is signalled or waits',
    ({ snapshot }, decision) => {
      const running = !isFinal(decision.record ?? snapshot.rollout);
      expect(!running || decision.signals.length > 0 || decision.waits.length > 0).toBe(true);
      for (const { reason, since } of decision.waits) {
        expect(reason.message).not.toBe('');
        expect(since).not.toBe('');
      }
    },
  );
});

describe('what starts', () => {
  property(
    'the nodes that Refit starts and the nodes in progress together never exceed the limit',
    (situation, decision) => {
      for (const { stage } of startedBy(situation, decision)) {
        const inFlight = stage.targets.filter(({ state }) => state === 'intended').length;
        expect(inFlight).toBeLessThanOrEqual(stage.role === 'controller' ? 1 : stage.maxInFlight);
      }
    },
  );

  property(
    'comes after everything before it is settled: no worker before the last controller',
    (situation, decision) => {
      const stages = (decision.record ?? situation.snapshot.rollout).stages;
      const moved = [...startedBy(situation, decision), ...decision.signals];
      for (const { stage } of moved) {
        const earlier = stages.slice(
          0,
          stages.findIndex(({ id }) => id === stage.id),
        );
        expect(earlier.flatMap(({ targets }) => targets).every(isSettled)).toBe(true);
      }
    },
  );

  property(
    'is nothing once the budget is used up, or while the plan cannot be right',
    (situation, decision) => {
      const after = decision.record ?? situation.snapshot.rollout;
      const stopped = failuresIn(after) > situation.policy.maxFailures || after.problems.length > 0;
      expect(stopped ? startedBy(situation, decision) : []).toEqual([]);
    },
  );

  property('is healthy: it exists, has a payload, and its gates pass', (situation, decision) => {
    const { snapshot } = situation;
    const { controlPlane } = snapshot.cluster;
    const servers = answerOf(controlPlane);
    for (const { stage, target } of [...startedBy(situation, decision), ...decision.signals]) {
      const { exists, platform, ready } = factsOf(snapshot, target);
      expect({ exists, payload: stage.payloads?.[platform ?? ''] !== undefined }).toEqual({
        exists: true,
        payload: true,
      });
      const healthy =
        stage.role === 'worker' ? ready : servers?.every((endpoint) => endpoint.ready);
      expect(healthy).toBe(true);
    }
  });

  property('is the first in the list of those that could', (situation, decision) => {
    const { snapshot } = situation;
    for (const { stage, target } of startedBy(situation, decision)) {
      const before = stage.targets.slice(
        0,
        stage.targets.findIndex(({ key }) => key === target.key),
      );
      const skipped = before.filter(({ state }) => state === 'pending');
      expect(
        skipped.every(
          (other) => stage.role === 'worker' && factsOf(snapshot, other).ready !== true,
        ),
      ).toBe(true);
    }
  });
});

describe('what is signalled', () => {
  property(
    'Refit signals a node only if its intent is recorded and the node has no signal yet',
    ({ snapshot }, { signals }) => {
      const intended = new Set(targetsIn(snapshot.rollout, 'intended').map(({ key }) => key));
      for (const { target } of signals) {
        expect(intended.has(target.key)).toBe(true);
        expect(factsOf(snapshot, target).observation.kind).toBe('none');
      }
    },
  );
});

describe('what is recorded', () => {
  const AFTER: Readonly<Record<RecordedState, readonly RecordedState[]>> = {
    pending: ['pending', 'intended', 'done', 'failed', 'missing', 'unsupported', 'skipped'],
    intended: ['intended', 'done', 'failed', 'missing', 'unsupported'],
    done: ['done'],
    failed: ['failed'],
    missing: ['missing'],
    unsupported: ['unsupported'],
    skipped: ['skipped'],
  };

  property('never goes back', ({ snapshot }, { record }) => {
    if (!record) return;
    const after = new Map(
      record.stages.flatMap(({ targets }) => targets.map(({ key, state }) => [key, state])),
    );
    for (const { key, state } of snapshot.rollout.stages.flatMap(({ targets }) => targets)) {
      expect(AFTER[state]).toContain(after.get(key));
    }
  });

  property('keeps the time of whatever did not change', ({ snapshot }, { record }) => {
    const before = new Map(
      snapshot.rollout.stages.flatMap(({ targets }) =>
        targets.map((target) => [target.key, target]),
      ),
    );
    for (const target of (record?.stages ?? []).flatMap(({ targets }) => targets)) {
      const same = before.get(target.key);
      if (same?.state === target.state && target.state !== 'intended') expect(target).toEqual(same);
    }
  });

  property(
    'ends well only where the last command of every target is done',
    (_situation, { record }) => {
      if (record?.phase !== 'done') return;
      const last = new Map(
        record.stages.flatMap(({ role, targets }) =>
          targets.map(({ name, state }) => [`${role} ${name}`, state]),
        ),
      );
      expect(new Set(last.values())).toSatisfy((states: Set<string>) =>
        states.isSubsetOf(new Set(['done'])),
      );
    },
  );

  property('ends only where nothing is in flight', ({ snapshot }, { record }) => {
    const ends = record !== undefined && isFinal(record) && !isFinal(snapshot.rollout);
    expect(ends ? targetsIn(record, 'intended') : []).toEqual([]);
  });
});
