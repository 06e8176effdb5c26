/**
 * Proves which targets are in the plan and which are in its status shards, that no target is lost between them, and
 * when the record cannot be read.
 */
import { assert, constantFrom, integer, array as listOf, property, tuple } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildPlan, buildUpdate, listed } from '../../../../../test/support/builders/plans.ts';
import { spreadBy } from '../../../../../test/support/builders/whole-records.ts';
import { buildWorldOf } from '../../../../../test/support/builders/worlds-of-kinds.ts';
import { later, T0 } from '../../../../../test/support/clock/times.ts';
import type { CommandStatus, Plan, TargetStatus } from '../../../../api/autopilot/plan.ts';
import { type StatusShard, statusShards } from '../../../../api/refit/status-shard.ts';
import type { ShardedRecord } from '../../../../engine/contract/features.ts';
import type { World } from '../../../../engine/contract/world.ts';
import { recordedRunIn, withRecordedSpec } from '../recorded-run.ts';
import { mergeShards, PROGRESS_ANNOTATION } from './merge.ts';
import { shards, shardsOfSizes } from './spread.ts';
import { listsOf } from './target-lists.ts';

const small = shardsOfSizes({ plan: 3, shard: 2, failures: 2 });
const NOTHING = buildWorldOf([statusShards, []]);

const entry = (name: string, state = 'SignalPending', at = 0): TargetStatus => ({
  name,
  state,
  lastUpdatedTimestamp: later(at),
});

/** Returns a plan whose status has one command in progress with those workers. */
function recordOf(workers: readonly TargetStatus[], more: Partial<CommandStatus> = {}): Plan {
  const command = {
    id: 0,
    state: 'SchedulableWait',
    k0supdate: { workers: [...workers] },
    ...more,
  };
  return buildPlan({}, { state: 'SchedulableWait', commands: [command] });
}

const written = ({ writes }: ShardedRecord<Plan>): StatusShard[] =>
  writes.flatMap((write) => (write.kind === 'begin' ? [] : [write.object as StatusShard]));

/** Returns the world after all writes of a record were carried out. */
function worldAfter(before: World, result: ShardedRecord<Plan>): World {
  const known = new Map(before.list(statusShards).map((shard) => [shard.metadata.name, shard]));
  for (const shard of written(result)) known.set(shard.metadata.name, shard);
  return buildWorldOf([statusShards, [...known.values()]]);
}

const begun = (
  workers: readonly TargetStatus[],
): { plan: Plan; world: World; result: ShardedRecord<Plan> } => {
  const result = spreadBy(small, buildPlan(), recordOf(workers), NOTHING, T0);
  return { plan: result.plan, world: worldAfter(NOTHING, result), result };
};

const FOUR = [entry('w1', 'SignalSent', 5), entry('w2'), entry('w3'), entry('w4')];

describe('the first record', () => {
  test('as many targets as a plan holds: the record is the plan, word for word', () => {
    const record = recordOf(FOUR.slice(0, 3));
    expect(spreadBy(small, buildPlan(), record, NOTHING, T0)).toEqual({ plan: record, writes: [] });
  });

  test('a plan with more targets than fit lists only nodes in progress and names its status shards', () => {
    const [command] = begun(FOUR).plan.status?.commands ?? [];
    expect(command?.k0supdate).toEqual({ workers: [FOUR[0]] });
    expect(JSON.parse(command?.description ?? '')).toEqual({
      targets: { total: 4, done: 0, failed: 0 },
      statusShards: { prefix: expect.stringMatching(/^autopilot-[0-9a-f]{10}$/), count: 2 },
    });
  });

  test('fewer with names that leave no room for more: just so', () => {
    const record = recordOf(
      Array.from({ length: 2_000 }, (_, index) => entry(String(index).padStart(253, 'w'))),
    );
    const { plan, writes } = spreadBy(shards, buildPlan(), record, NOTHING, T0);
    expect(writes).toHaveLength(10);
    expect(listsOf(plan)[1]?.entries).toEqual([]);
  });

  test.each([
    ['SignalMissingNode', 249],
    ['SignalApplyFailed', 249],
    ['SignalMissingNode', 10],
  ])(
    'in addition to 5,000 listed names, as many %s as leave the object below the limit of etcd (names of %i)',
    (state, length) => {
      const names = Array.from({ length: 5_000 }, (_, index) =>
        String(index).padStart(length, 'w'),
      );
      const update = buildUpdate({ targets: { workers: listed(...names) } });
      const note = 'x'.repeat(length === 10 ? 1_000_000 : 1_000);
      const plan = buildPlan({ commands: [{ k0supdate: update }] });
      const noted = { ...plan, metadata: { ...plan.metadata, annotations: { note } } };
      const recorded = recordOf(names.map((name) => entry(name, state)));
      const record = { ...recorded, spec: noted.spec, metadata: noted.metadata };
      const { plan: short, writes } = spreadBy(shards, noted, record, NOTHING, T0);
      expect(Buffer.byteLength(JSON.stringify(short))).toBeLessThan(1.5 * 2 ** 20 - 50_000);
      expect(listsOf(short)[1]?.entries.length).toBeGreaterThan(100);
      expect(writes.length).toBe(25);
    },
  );

  test('the status shards hold all of them in order, and go with the plan', () => {
    const { result } = begun(FOUR);
    expect(result.writes.map(({ kind }) => kind)).toEqual(['create', 'create']);
    expect(written(result).map(({ command, list, pending }) => [command, list, pending])).toEqual([
      [0, 'k0supdate.workers', ['w1', 'w2']],
      [0, 'k0supdate.workers', ['w3', 'w4']],
    ]);
    const owner = {
      apiVersion: 'autopilot.k0sproject.io/v1beta2',
      kind: 'Plan',
      name: 'autopilot',
      uid: 'plan-uid',
    };
    expect(written(result)[0]?.metadata.ownerReferences).toEqual([owner]);
  });

  test('other targets, or another version of the plan, make status shards of other names', () => {
    const names = [
      begun(FOUR),
      begun([...FOUR.slice(0, 3), entry('w5')]),
      {
        result: spreadBy(
          small,
          { ...buildPlan(), metadata: { ...buildPlan().metadata, resourceVersion: '2' } },
          recordOf(FOUR),
          NOTHING,
          T0,
        ),
      },
    ].map(({ result }) => written(result)[0]?.metadata.name);
    expect(new Set(names).size).toBe(3);
    expect(written(begun(FOUR).result)[0]?.metadata.name).toBe(names[0]);
  });

  test('each list has status shards of its own', () => {
    const bundles = { airgapupdate: { workers: [entry('w1'), entry('w2'), entry('w3')] } };
    const result = spreadBy(small, buildPlan(), recordOf(FOUR.slice(0, 1), bundles), NOTHING, T0);
    expect(written(result).map(({ list, pending }) => [list, pending])).toEqual([
      ['k0supdate.workers', ['w1']],
      ['airgapupdate.workers', ['w1', 'w2']],
      ['airgapupdate.workers', ['w3']],
    ]);
  });
});

describe('a later record', () => {
  const { plan, world } = begun(FOUR);
  const next = (
    workers: readonly TargetStatus[],
    more: Partial<CommandStatus> = {},
    now = T0,
  ): ShardedRecord<Plan> => spreadBy(small, plan, recordOf(workers, more), world, now);

  test('when a target completes, Refit writes only the status shard of this target', () => {
    const result = next([
      entry('w1', 'SignalCompleted', 9),
      entry('w2', 'SignalSent', 9),
      ...FOUR.slice(2),
    ]);
    expect(result.writes.map(({ kind }) => kind)).toEqual(['replace']);
    expect(written(result)[0]).toMatchObject({
      pending: ['w2'],
      settled: [{ state: 'SignalCompleted', since: later(9), targets: ['w1'] }],
    });
    expect(listsOf(result.plan)[1]?.entries).toEqual([entry('w2', 'SignalSent', 9)]);
  });

  test('of what merely starts writes none', () => {
    expect(
      next([FOUR[0] ?? entry('w1'), entry('w2', 'SignalSent'), ...FOUR.slice(2)]).writes,
    ).toEqual([]);
  });

  test('takes nothing back of what a status shard says of the end of a target that was seen in flight', () => {
    const ended = next([entry('w1', 'SignalApplyFailed', 9), ...FOUR.slice(1)]);
    const after = worldAfter(world, ended);
    expect(spreadBy(small, plan, recordOf(FOUR), after, T0).writes).toEqual([]);
    // A retry records a failed target as pending first, and as intended later.
    const again = spreadBy(small, ended.plan, recordOf([entry('w1'), ...FOUR.slice(1)]), after, T0);
    expect(written(again).map(({ pending, settled }) => [pending, settled])).toEqual([
      [['w1', 'w2'], []],
    ]);
  });

  test('lists what failed, but not more than anybody reads', () => {
    const failed = FOUR.map(({ name }) => entry(name, 'SignalApplyFailed', 7));
    const result = next(failed);
    expect(listsOf(result.plan)[1]?.entries.map(({ name }) => name)).toEqual(['w1', 'w2']);
    expect(
      written(result).flatMap(({ settled }) => settled?.map(({ targets }) => targets)),
    ).toEqual([
      ['w1', 'w2'],
      ['w3', 'w4'],
    ]);
  });

  test('keeps a reason together with the reference, and returns it alone', () => {
    const result = next(FOUR, { description: 'w1: no' });
    expect(JSON.parse(result.plan.status?.commands[0]?.description ?? '')).toMatchObject({
      message: 'w1: no',
      targets: { total: 4 },
    });
    expect(mergeShards(result.plan, world).plan.status?.commands[0]?.description).toBe('w1: no');
    expect(mergeShards(plan, world).plan.status?.commands[0]).not.toHaveProperty('description');
  });

  test('makes the plan another one whenever a target comes to an end, so that no old decision fits it', () => {
    const failed = [...FOUR, entry('w5'), entry('w6')].map(({ name }) =>
      entry(name, 'SignalApplyFailed'),
    );
    const many = begun(failed);
    const again = spreadBy(
      small,
      many.plan,
      recordOf([...failed.slice(0, 5), entry('w6')]),
      many.world,
      T0,
    );
    expect(listsOf(again.plan)).toEqual(listsOf(many.plan));
    expect(again.plan).not.toEqual(many.plan);
  });

  test.each([
    ['there are none yet', {}, T0, true],
    ['they are fresh', { at: later(0) }, T0 + 9_999, false],
    ['they are old', { at: later(0) }, T0 + 10_000, true],
    ['a clock wrote them that was ahead', { at: later(60_000) }, T0, true],
    ['nobody can read them', { at: 'soon' }, T0, true],
  ])('counts for people are due where %s', (_name, progress, now, due) => {
    const annotations = { 'upgrade.refit.dev/progress': JSON.stringify(progress), other: 'stays' };
    const annotated = { ...plan, metadata: { ...plan.metadata, annotations } };
    const { counted } = spreadBy(small, annotated, recordOf(FOUR), world, now);
    expect(counted !== undefined).toBe(due);
    if (!counted) return;
    const { 'upgrade.refit.dev/progress': text = '', ...others } =
      counted.metadata.annotations ?? {};
    expect(JSON.parse(text)).toEqual({
      total: 4,
      done: 0,
      inFlight: 1,
      pending: 3,
      failed: 0,
      at: later(now - T0),
    });
    expect([others, counted.status]).toEqual([{ other: 'stays' }, undefined]);
  });

  test('the last one counts, however fresh the counts are', () => {
    const annotations = { 'upgrade.refit.dev/progress': JSON.stringify({ at: later(0) }) };
    const annotated = { ...plan, metadata: { ...plan.metadata, annotations } };
    const record = recordOf(FOUR.map(({ name }) => entry(name, 'SignalCompleted')));
    const end = {
      ...record,
      status: { state: 'Completed', commands: record.status?.commands ?? [] },
    };
    expect(spreadBy(small, annotated, end, world, T0).counted).toBeDefined();
  });
});

describe('reading', () => {
  test('what the plan lists counts, whatever its status shard says: a status shard is written first', () => {
    const { plan, world } = begun(FOUR);
    const ahead = spreadBy(
      small,
      plan,
      recordOf(FOUR.map(({ name }) => entry(name, 'SignalCompleted'))),
      world,
      T0,
    );
    const seen = mergeShards(plan, worldAfter(world, ahead));
    expect(listsOf(seen.plan)[1]?.entries.map(({ state }) => state)).toEqual([
      'SignalSent',
      ...['w2', 'w3', 'w4'].map(() => 'SignalCompleted'),
    ]);
  });

  test('a plan is put together once, and anew when one of its status shards changes', () => {
    const { plan, world } = begun(FOUR);
    const whole = mergeShards(plan, world).plan;
    expect(mergeShards(plan, world).plan).toBe(whole);
    const [first, ...others] = world.list(statusShards);
    const changed = buildWorldOf([
      statusShards,
      first ? [{ ...first, pending: [] }, ...others] : [],
    ]);
    expect(listsOf(mergeShards(plan, changed).plan)).not.toEqual(listsOf(whole));
    expect(mergeShards(plan, world).plan).toEqual(whole);
  });

  test('a missing status shard leaves the record unread', () => {
    const { plan, world } = begun(FOUR);
    const [first] = world.list(statusShards);
    const { unread } = mergeShards(plan, buildWorldOf([statusShards, first ? [first] : []]));
    expect(unread?.message).toMatch(
      /^StatusShard autopilot-[0-9a-f]{10}-1 is missing, so the state of its targets is unknown$/,
    );
  });

  test('a description that was overwritten leaves the record unread, as the counts tell', () => {
    const { plan, world } = begun(FOUR);
    const { counted } = spreadBy(small, plan, recordOf(FOUR), world, T0);
    const lost = { ...recordOf([]), metadata: counted?.metadata ?? plan.metadata };
    expect(mergeShards(lost, world).unread?.code).toBe('RecordUnread');
    expect(
      mergeShards({ ...lost, status: { state: '', commands: [] } }, world).unread,
    ).toBeUndefined();
  });

  test('counts older than the plan are of the one that it was copied from: its own record is whole', () => {
    const metadata = { ...buildPlan().metadata, creationTimestamp: later(60_000) };
    const counts = { 'upgrade.refit.dev/progress': JSON.stringify({ total: 6000, at: later(0) }) };
    const plan = { ...recordOf(FOUR.slice(0, 3)), metadata: { ...metadata, annotations: counts } };
    expect(mergeShards(plan, NOTHING)).toEqual({ plan });
  });

  test.each([
    ['a sentence', 'w1: no; see 2 StatusShards autopilot-0a1b2c3d4e'],
    ['JSON that is cut off', '{"targets":'],
    ['other JSON', '{"statusShards":{"prefix":"autopilot-0a1b2c3d4e","count":2}}'],
    [
      'JSON with one member more',
      '{"targets":{"total":1,"done":0,"failed":0},"statusShards":{"prefix":"p","count":1},"x":1}',
    ],
  ])('a description that is %s refers to nothing, and stays as it is', (_what, description) => {
    const plan = recordOf(FOUR, { description });
    expect(mergeShards(plan, NOTHING)).toEqual({ plan });
  });

  test('a leader that knows no status shards calls the plan completed: it is not', () => {
    const { plan, world } = begun(FOUR);
    const called = (state: string): Plan => ({
      ...plan,
      status: { state, commands: plan.status?.commands ?? [] },
    });
    expect(mergeShards(called('Completed'), world).plan.status?.state).toBe('SchedulableWait');
    expect(mergeShards(called('ApplyFailed'), world).plan.status?.state).toBe('ApplyFailed');
  });

  test('the status shards of targets are those in which they stand', () => {
    const { plan, world } = begun(FOUR);
    const target = { key: '0/worker/w3', name: 'w3', state: 'pending' as const, since: later(0) };
    expect(
      small.holding(plan, [target], world).map(({ object }) => object.metadata.name.at(-1)),
    ).toEqual(['1']);
    const done = spreadBy(
      small,
      plan,
      recordOf(FOUR.map(({ name }) => entry(name, 'SignalCompleted'))),
      world,
      T0,
    );
    const then = small.holding(plan, [target], worldAfter(world, done));
    expect(then.map(({ object }) => object.metadata.name.at(-1))).toEqual(['1']);
    expect(small.holding(plan, [], world)).toEqual([]);
    expect(small.holding(buildPlan(), [target], world)).toEqual([]);
  });
});

test('whatever is recorded one after the other is read back as it was recorded last', () => {
  const states = constantFrom(
    'SignalPending',
    'SignalSent',
    'SignalCompleted',
    'SignalApplyFailed',
  );
  const records = listOf(
    listOf(tuple(states, integer({ min: 0, max: 3 })), { minLength: 7, maxLength: 7 }),
    {
      minLength: 1,
      maxLength: 6,
    },
  );
  assert(
    property(records, (all) => {
      let plan = buildPlan();
      let world = NOTHING;
      for (const states of all) {
        const workers = states.map(([state, at], index) => entry(`w${index}`, state, at));
        const result = spreadBy(small, plan, recordOf(workers), world, T0);
        world = worldAfter(world, result);
        plan = result.plan;
        const seen = mergeShards(plan, world).plan;
        const found = new Map(listsOf(seen)[1]?.entries.map(({ name, state }) => [name, state]));
        expect(found).toEqual(new Map(workers.map(({ name, state }) => [name, state])));
      }
    }),
  );
});

describe('a run other than the first', () => {
  const RUN = { run: 2, generation: 3 };
  const record = withRecordedSpec(recordOf(FOUR, { description: 'w9 failed' }), RUN);
  const result = spreadBy(small, buildPlan(), record, NOTHING, T0);
  const world = worldAfter(NOTHING, result);

  test('its number and its reason are read from the record with status shards', () => {
    expect(mergeShards(result.plan, world).plan).toEqual(record);
    expect(recordedRunIn(record)).toEqual(RUN);
  });

  test('its counts name it, so a record that lost its description is not taken for a small one', () => {
    const next = spreadBy(small, result.plan, record, world, T0 + 60_000);
    const annotations = next.counted?.metadata.annotations ?? {};
    expect(JSON.parse(annotations[PROGRESS_ANNOTATION] ?? '')).toMatchObject({ run: 2, total: 4 });
    const lost = recordOf([]);
    const counted = { ...lost, metadata: { ...lost.metadata, annotations } };
    expect(mergeShards(counted, world).unread).toBeDefined();
    const later = withRecordedSpec(counted, { run: 3, generation: 3 });
    expect(mergeShards(later, world).unread).toBeUndefined();
  });
});
