/** Tests that the reading of a plan stays small, and reads each target only when somebody asks for the targets. */
import { expect, test } from 'vitest';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import type { TargetFacts } from '../model/facts.ts';
import type { RecordedState } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { readForPeople } from './inspect.ts';
import { readPlan } from './plan-reading.ts';

function snapshotOf(
  states: readonly RecordedState[],
  facts: Readonly<Record<string, Partial<TargetFacts>>> = {},
): Snapshot {
  const targets = states.map((state, index) => buildTarget(`w${index + 1}`, state));
  return buildSnapshot(buildRollout([buildStage('worker', targets)]), facts);
}

/** Returns the snapshot, and a function that returns how many times the facts of a target were read. */
function counting(snapshot: Snapshot): { snapshot: Snapshot; reads: () => number } {
  let reads = 0;
  const get = (key: string) => {
    reads++;
    return snapshot.targets.get(key);
  };
  const targets = { ...snapshot.targets, get };
  return { snapshot: { ...snapshot, targets }, reads: () => reads };
}

const read = (snapshot: Snapshot) =>
  readPlan(assess(snapshot, buildPolicy({ maxFailures: 2000 }), T0), { waits: [] });

test('the reading of a plan with a thousand failed targets is as small as that of a hundred', () => {
  const sizes = [100, 1000].map((count) => {
    const { counts, ...reading } = read(snapshotOf(Array.from({ length: count }, () => 'failed')));
    expect(counts.failed).toBe(count);
    return JSON.stringify(reading).length;
  });
  expect(sizes[1]).toBe(sizes[0]);
});

test('the targets are read when somebody asks for the stages, and only once', () => {
  const done = snapshotOf(Array.from({ length: 50 }, () => 'done'));
  const apiServers = [{ name: 'c1', version: 'v1.36.0' }];
  const { snapshot, reads } = counting(withParts(done, { cluster: { apiServers } }));
  const reading = read(snapshot);
  expect(reading.counts.done).toBe(50);
  JSON.stringify(reading);
  expect(reads()).toBe(0);
  reading.wayBack();
  reading.wayBack();
  expect(reads()).toBe(50);
  const stages = reading.stages();
  expect(reads()).toBeGreaterThanOrEqual(100);
  const after = reads();
  expect(reading.stages()).toBe(stages);
  expect(reads()).toBe(after);
});

test('a target says what it ran, what it was asked for, what the plan wants, and why it failed', () => {
  const failed = {
    kind: 'failed',
    attempt: later(0),
    since: later(1000),
    message: 'the disk is full',
    report: { from: 'v1.35.0+x.1' },
  } as const;
  const snapshot = snapshotOf(['failed', 'pending'], {
    w1: { observation: failed, version: 'v1.35.0+x.1', asked: 'v1.36.0+x.1' },
  });
  const [stage] = readForPeople(snapshot, buildPolicy(), T0).stages();
  const [first, second] = stage?.targets ?? [];
  expect(first).toMatchObject({
    ran: 'v1.35.0+x.1',
    asked: 'v1.36.0+x.1',
    wants: stage?.version,
    from: 'v1.35.0+x.1',
    cause: { code: 'TargetFailed', message: 'the disk is full' },
    work: { kind: 'failed', began: later(0) },
  });
  expect(second).toMatchObject({ phase: 'pending', asked: undefined, cause: undefined });
  expect(second?.work).toBeUndefined();
});

test('after the end, a target differs if it runs a newer version, but a virtual Node does not', () => {
  const { rollout, targets } = snapshotOf(['done', 'done', 'done'], {
    w1: { version: 'v1.36.3+x' },
    w2: { version: 'v1.36.5+x' },
    w3: { version: 'v1.99.0', virtual: 'a virtual kubelet' },
  });
  const differing = (phase: 'running' | 'done') => {
    const snapshot = { ...buildSnapshot({ ...rollout, phase }), targets };
    const stages = readForPeople(snapshot, buildPolicy(), T0).stages();
    return stages.flatMap((stage) => stage.targets.map(({ differs }) => differs));
  };
  expect(differing('done')).toEqual([false, true, false]);
  expect(differing('running')).toEqual([false, false, false]);
});

test.each([
  ['right after its upgrade', later(0), undefined],
  ['two minutes after its upgrade', later(-2 * MINUTE), 'v1.35.0+x'],
])('the version that a kubelet shows: a node that shows the old version %s', (_, since, ran) => {
  const stage = buildStage('worker', [{ ...buildTarget('w1', 'done'), since }]);
  const facts = { version: 'v1.35.0+x', asked: 'v1.36.0+x.1', isBehind: true };
  const snapshot = buildSnapshot(buildRollout([stage]), { w1: facts });
  const [read] = readForPeople(snapshot, buildPolicy(), T0).stages();
  expect(read?.targets[0]?.ran).toBe(ran);
});
