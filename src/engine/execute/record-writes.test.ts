/**
 * Proves the order in which a decision is recorded: first the notes on the objects of the targets, then the status
 * shards, then the plan.
 */

import { describe, expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import {
  buildTablePlan,
  type TablePlan,
  tableDialect,
} from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { NO_FAILURES } from '../../../test/support/builders/whole-records.ts';
import { buildWorld } from '../../../test/support/builders/worlds.ts';
import { HOUR, later } from '../../../test/support/clock/times.ts';
import { type KubeObject, nodes, type Resource } from '../../kube/resources.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { Instruction } from '../contract/signal.ts';
import {
  type RecordedState,
  type Rollout,
  type Target,
  withStages,
  withTargets,
} from '../model/rollout.ts';
import { DEFAULT_POLICY } from '../policy/rollout-policy.ts';
import { OwnWrites } from '../snapshot/world.ts';
import { record } from './record.ts';
import type { Effects } from './writes.ts';

const SHARDS: Resource = { ...tableDialect.plans, kind: 'Shard', plural: 'shards' };
const NOTES: Resource = { ...tableDialect.plans, kind: 'Note', plural: 'notes' };
const NOW = 1234;

type States = Readonly<Record<string, RecordedState>>;

function rolloutOf(states: States, more: Partial<Rollout> = {}): Rollout {
  const targets = Object.entries(states).map(([name, state]) => buildTarget(name, state));
  return buildRollout([buildStage('worker', targets)], more);
}

class Scene {
  readonly api = new MemoryApi();
  readonly ownWrites = new OwnWrites();
  /** The refusals of writes to the objects of targets, in the words of the API server. */
  readonly refused: string[] = [];
  dialect: Dialect<TablePlan> = tableDialect;
  readonly plan = this.api.put(tableDialect.plans, buildTablePlan({ workers: ['w1'] }));

  /** Makes the dialect write notes about a target. Each note is a separate object. */
  noting(): void {
    const note =
      (what: string) =>
      (_world: unknown, _rollout: unknown, _stage: unknown, { name }: { name: string }) =>
        ({
          kind: 'create',
          resource: NOTES,
          object: { metadata: { name: `${what}-${name}` } },
        }) satisfies Instruction;
    const signal = { ...tableDialect.signal, remember: note('remember'), finish: note('finish') };
    this.dialect = { ...tableDialect, signal };
  }

  /**
   * Makes the dialect use two shards. `written` are the names of the shards that change; `holding` are the names of the
   * shards on which the record depends.
   */
  sharding(written: readonly string[], holding: readonly string[] = [], isCounted = false): void {
    const shards = new Map(
      ['s1', 's2'].map((name) => [name, this.api.put(SHARDS, { metadata: { name } })]),
    );
    const shard = (name: string): KubeObject => shards.get(name) ?? { metadata: { name } };
    this.dialect = {
      ...tableDialect,
      sharding: {
        spread: (plan, { projected }) => ({
          plan: projected,
          writes: written.map((name) => ({
            kind: 'replace',
            resource: SHARDS,
            object: shard(name),
          })),
          ...(isCounted ? { counted: plan } : {}),
        }),
        holding: () => holding.map((name) => ({ resource: SHARDS, object: shard(name) })),
      },
    };
  }

  async record(before: Rollout, after: Rollout, refusals?: Effects['refusals']): Promise<boolean> {
    return await record(
      {
        dialect: this.dialect,
        client: this.api.client,
        world: buildWorld([], [buildNode('w1')]),
        ownWrites: this.ownWrites,
        ...(refusals ? { refusals } : {}),
      },
      { plan: this.plan, policy: DEFAULT_POLICY, before, after, failures: NO_FAILURES },
      NOW,
    );
  }

  get recorded(): string | undefined {
    return this.api.read<TablePlan>(tableDialect.plans, 'plan').status?.phase;
  }

  refusals(): NonNullable<Effects['refusals']> {
    return {
      of: () => undefined,
      add: (_rollout, { target: { name } }, words) => void this.refused.push(`${name}: ${words}`),
    };
  }

  refuse(call: string, code = 403, reason = 'Forbidden'): void {
    this.api.before(call, () => {
      throw refusal(code, reason);
    });
  }
}

const PLAN = 'replace plans/plan/status';

describe('a record that needs writes on the objects of targets', () => {
  test.each<[string, RecordedState, RecordedState, string[]]>([
    ['starts', 'pending', 'intended', ['create notes/remember-w1', PLAN]],
    ['failed', 'intended', 'failed', ['create notes/remember-w1', PLAN]],
    ['is done', 'intended', 'done', ['create notes/finish-w1', PLAN]],
    ['goes on', 'intended', 'intended', [PLAN]],
    ['is to be tried again', 'failed', 'pending', [PLAN]],
  ])(
    'what is to be known of one that %s stands there before the record',
    async (_what, from, to, calls) => {
      const scene = new Scene();
      scene.noting();
      const before = rolloutOf({ w1: from });
      const after = rolloutOf({ w1: to });
      expect(await scene.record(before, after)).toBe(true);
      expect(scene.api.calls).toEqual(calls);
    },
  );

  test.each(['failed', 'done', 'intended'] as const)(
    'a dialect that notes nothing needs no more than the record: %s',
    async (state) => {
      const scene = new Scene();
      const before = rolloutOf({ w1: 'pending' });
      const after = rolloutOf({ w1: state });
      expect(await scene.record(before, after)).toBe(true);
      expect(scene.api.calls).toEqual([PLAN]);
    },
  );

  test.each([
    ['a version that begins remembers what an earlier one left at work', 'new', ['w1']],
    ['one that goes on has remembered it', 'running', []],
  ] as const)('%s', async (_what, phase, remembered) => {
    const scene = new Scene();
    scene.noting();
    const states = { w1: 'intended', w2: 'pending', w3: 'failed', w4: 'done' } as const;
    await scene.record(rolloutOf(states, { phase }), rolloutOf(states));
    expect(scene.api.calls).toEqual([
      ...remembered.map((name) => `create notes/remember-${name}`),
      PLAN,
    ]);
  });

  test('a target that stays intended with another attempt is remembered before the record', async () => {
    const scene = new Scene();
    scene.noting();
    const before = rolloutOf({ w1: 'intended', w2: 'intended' });
    const [first] = withStages(before).map(
      ({ target }): Target => ({ ...target, since: later(HOUR) }),
    );
    const after = withTargets(before, first ? [first] : []);
    expect(await scene.record(before, after)).toBe(true);
    expect(scene.api.calls).toEqual(['create notes/remember-w1', PLAN]);
  });

  test('an attempt that no record names is remembered, even if it begins at the time of the target', async () => {
    const scene = new Scene();
    scene.noting();
    const after = rolloutOf({ w1: 'intended', w2: 'intended' });
    const [first] = withStages(after).map(
      ({ target }): Target => ({ ...target, lacksAttempt: true }),
    );
    const before = withTargets(after, first ? [first] : []);
    expect(await scene.record(before, after)).toBe(true);
    expect(scene.api.calls).toEqual(['create notes/remember-w1', PLAN]);
    const again = new Scene();
    again.noting();
    expect(await again.record(before, before)).toBe(true);
    expect(again.api.calls).toEqual([PLAN]);
  });

  test.each<[RecordedState, string, boolean]>([
    ['intended', 'remember', false],
    ['done', 'finish', false],
    ['failed', 'remember', true],
  ])(
    'a write is refused for a target that is to be %s: %s, and the record follows: %s',
    async (state, what, isRecorded) => {
      const scene = new Scene();
      scene.noting();
      scene.refuse(`create notes/${what}-w1`);
      const before = rolloutOf({ w1: 'pending' });
      const after = rolloutOf({ w1: state });
      expect(await scene.record(before, after, scene.refusals())).toBe(isRecorded);
      expect(scene.refused).toEqual(['w1: Forbidden by the test']);
      expect(scene.api.calls.includes(PLAN)).toBe(isRecorded);
    },
  );

  test('a refused write is an error where nobody remembers refusals, and a server in trouble always is', async () => {
    const scene = new Scene();
    scene.noting();
    const change = [rolloutOf({ w1: 'intended' }), rolloutOf({ w1: 'failed' })] as const;
    scene.refuse('create notes');
    await expect(scene.record(...change)).rejects.toThrow('Forbidden by the test');
    scene.refuse('create notes', 503, 'ServiceUnavailable');
    await expect(scene.record(...change, scene.refusals())).rejects.toThrow('ServiceUnavailable');
    expect([scene.refused, scene.recorded]).toEqual([[], undefined]);
  });

  test('an object that has changed holds up the record', async () => {
    const scene = new Scene();
    const object = scene.api.put(nodes, buildNode('w1'));
    const finish = () => ({ kind: 'replace', resource: nodes, object }) as const;
    scene.dialect = { ...tableDialect, signal: { ...tableDialect.signal, finish } };
    scene.api.put(nodes, object);
    const before = rolloutOf({ w1: 'intended' });
    const after = rolloutOf({ w1: 'done' });
    expect(await scene.record(before, after)).toBe(false);
    expect(scene.recorded).toBeUndefined();
  });
});

describe('a record in status shards', () => {
  const change = [rolloutOf({ w1: 'pending' }), rolloutOf({ w1: 'intended' })] as const;

  test('comes before the plan, and after one look at what it rests on', async () => {
    const scene = new Scene();
    scene.sharding(['s1', 's2'], ['s2']);
    expect(await scene.record(...change)).toBe(true);
    expect(scene.api.calls).toEqual([
      'get plans/plan',
      'get shards/s2',
      'replace shards/s1',
      'replace shards/s2',
      PLAN,
    ]);
    expect(scene.recorded).toBe('running');
  });

  test('without a change of its own, only what it rests on is looked at', async () => {
    const scene = new Scene();
    scene.sharding([], ['s2']);
    expect(await scene.record(...change)).toBe(true);
    expect(scene.api.calls).toEqual(['get shards/s2', PLAN]);
  });

  test.each<[string, string[], string[], (scene: Scene) => void]>([
    ['the plan', ['s1'], [], ({ api, plan }) => void api.put(tableDialect.plans, plan)],
    [
      'a shard that it rests on',
      ['s1'],
      ['s2'],
      ({ api }) => void api.put(SHARDS, { metadata: { name: 's2' } }),
    ],
    ['a shard that it rests on alone', [], ['s2'], ({ api }) => api.remove(SHARDS, 's2')],
  ])('nothing is written where %s has changed', async (_what, written, holding, happen) => {
    const scene = new Scene();
    scene.sharding(written, holding);
    happen(scene);
    expect(await scene.record(...change)).toBe(false);
    expect(scene.api.calls.filter((call) => call.startsWith('replace'))).toEqual([]);
  });

  test('the plan is not written where one of the shards has changed', async () => {
    const scene = new Scene();
    scene.sharding(['s1', 's2']);
    scene.api.put(SHARDS, { metadata: { name: 's1' } });
    expect(await scene.record(...change)).toBe(false);
    expect(scene.api.calls).toEqual(['get plans/plan', 'replace shards/s1', 'replace shards/s2']);
    expect(scene.recorded).toBeUndefined();
  });

  test('counts for people are written with the plan first, and its status on the plan as it is then', async () => {
    const scene = new Scene();
    scene.sharding([], [], true);
    expect(await scene.record(...change)).toBe(true);
    expect(scene.api.calls).toEqual(['replace plans/plan', PLAN]);
    expect(scene.recorded).toBe('running');
  });

  test('no status is written where the plan has changed before its counts', async () => {
    const scene = new Scene();
    scene.sharding([], [], true);
    scene.api.put(tableDialect.plans, scene.plan);
    expect(await scene.record(...change)).toBe(false);
    expect(scene.api.calls).toEqual(['replace plans/plan']);
  });
});

describe('the plan', () => {
  const change = [rolloutOf({ w1: 'pending' }), rolloutOf({ w1: 'intended' })] as const;

  test('is written as a whole where its kind has no status', async () => {
    const scene = new Scene();
    const { statusRecord: _none, ...others } = tableDialect;
    scene.dialect = others;
    expect(await scene.record(...change)).toBe(true);
    expect(scene.api.calls).toEqual(['replace plans/plan']);
  });

  test('is known at once as it was written', async () => {
    const scene = new Scene();
    await scene.record(...change);
    const written = scene.api.read(tableDialect.plans, 'plan');
    expect(scene.ownWrites.isFresh(written)).toBe(true);
    expect(scene.ownWrites.isFresh(scene.plan)).toBe(false);
  });

  test('that has changed is not written', async () => {
    const scene = new Scene();
    scene.api.put(tableDialect.plans, scene.plan);
    expect(await scene.record(...change)).toBe(false);
    expect(scene.recorded).toBeUndefined();
  });

  test('is not written where a target that is given back may have its signal', async () => {
    const scene = new Scene();
    const object = scene.api.put(nodes, buildNode('w1'));
    const send = () => ({ kind: 'replace', resource: nodes, object }) as const;
    scene.dialect = { ...tableDialect, signal: { ...tableDialect.signal, send } };
    scene.api.put(nodes, object);
    expect(await scene.record(rolloutOf({ w1: 'intended' }), rolloutOf({ w1: 'pending' }))).toBe(
      false,
    );
    expect(scene.api.calls).toEqual(['get nodes/w1']);
  });
});
