/** Proves what the commands of one turn cause: the outcome, the reports, and which writes are not done. */
import { describe, expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import {
  buildTablePlan,
  type TablePlan,
  tableDialect,
} from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import type { KubeClient } from '../../kube/client.ts';
import { annotated, jobs, nodes } from '../../kube/resources.ts';
import { assess } from '../assess/assess.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { NodeAction, Signalling } from '../model/decision.ts';
import { because } from '../model/reasons.ts';
import type { Rollout } from '../model/rollout.ts';
import type { Reporter } from '../report/reporter.ts';
import type { Answers } from '../snapshot/probes.ts';
import { type RefusedWrites, refusedWrites } from '../snapshot/refused-writes.ts';
import { freshWorld, OwnWrites, viewsOf } from '../snapshot/world.ts';
import type { HooksCommand } from '../turn/choose-hooks.ts';
import type { Command } from '../turn/commands.ts';
import { type ExecuteParts, execute, type Outcome } from './execute.ts';

const STAGE = buildStage('worker', [
  buildTarget('w1', 'intended', { since: later(-1000) }),
  buildTarget('w2', 'intended', { since: later(-1000) }),
]);
const RUNNING = buildRollout([STAGE]);
const REASON = because('TargetFailed', 'w1 failed');
const ORDER = { retries: [], moments: new Map([['w1', later(5)]]), counts: { w1: 2 } };

const SIGNALS = STAGE.targets.map((target): Signalling => ({ stage: STAGE, target, agent: {} }));
const SIGNAL_COMMANDS = SIGNALS.map((signalling): Command => ({ kind: 'signal', signalling }));

/** Returns the command that adds the taint of a pending target to the Node. */
function taint(name: 'w1' | 'w2'): Command {
  const at = SIGNALS.find(({ target }) => target.name === name);
  if (!at) throw new Error(`there is no target ${name}`);
  const nodeAction: NodeAction = { kind: 'taint', stage: STAGE, target: at.target, node: name };
  return { kind: 'node-action', nodeAction };
}

class Scene {
  readonly api = new MemoryApi();
  readonly clock = new FakeClock(T0);
  /** What the reporter received, in order. */
  readonly told: string[] = [];
  readonly refused: string[] = [];
  readonly followed: HooksCommand[] = [];
  readonly asked: string[] = [];
  readonly refusals: RefusedWrites = refusedWrites(this.clock, (_rollout, _at, { message }) => {
    this.refused.push(message);
  });
  dialect: Dialect<TablePlan> = tableDialect;
  client: KubeClient = this.api.client;
  /** The milliseconds after which the reporter has more to report. */
  reportMs: number | undefined;
  /** The reasons why probes have no answer. */
  unanswered: readonly ReturnType<typeof because>[] = [];

  constructor() {
    const { metadata, ...plan } = buildTablePlan({ workers: ['w1', 'w2'] });
    this.api.put(tableDialect.plans, { ...plan, metadata: { ...metadata, generation: 3 } });
    for (const name of ['w1', 'w2']) this.api.put(nodes, buildNode(name));
  }

  get plan(): TablePlan {
    return this.api.read(tableDialect.plans, 'plan');
  }

  /** Makes the API server answer the next call that begins with `prefix` with this error. */
  answer(prefix: string, code: number, reason: string, message?: string): void {
    this.api.before(prefix, () => {
      throw refusal(code, reason, message);
    });
  }

  /** Carries out the commands. With `isAlone`, there is no reporter, and nothing that carries out hooks. */
  async execute(
    commands: readonly Command[],
    { rollout = RUNNING, isAlone = false }: { rollout?: Rollout; isAlone?: boolean } = {},
  ): Promise<Outcome> {
    const view = this.api.view(nodes);
    view.catchUp();
    const ownWrites = new OwnWrites(this.clock);
    const parts: ExecuteParts = {
      dialect: this.dialect,
      client: this.client,
      world: freshWorld(viewsOf([[nodes, view]]), ownWrites),
      ownWrites,
      clock: this.clock,
      prober: { askControlPlane: async () => await Promise.resolve([]) },
      refusals: this.refusals,
      ...(isAlone ? {} : { reporter: this.#reporter(), hooks: this.#hooks() }),
    };
    const policy = buildPolicy();
    const assessment = assess(buildSnapshot(rollout), policy, T0);
    return await execute(parts, this.#answers(), { plan: this.plan, assessment }, commands);
  }

  #reporter(): Reporter {
    const { told } = this;
    const reporter: Partial<Reporter> = {
      restarted: ({ plan }) => void told.push(`restarted ${plan.metadata.name}`),
      rolledBack: (_turn, { message }) => void told.push(`rolled back: ${message}`),
      retried: (_turn, retries) => void told.push(`retried ${retries.length}`),
      recorded: (_turn, { phase }) => void told.push(`recorded ${phase}`),
      ran: (_turn, { kind, target }) => void told.push(`ran ${kind} of ${target.name}`),
      sent: (_turn, sent) => {
        for (const { signalling, result } of sent) told.push(`${signalling.target.name} ${result}`);
      },
      failed: (_plan, { message }) => void told.push(`failed: ${message}`),
      decided: async () => {
        told.push('decided');
        return await Promise.resolve(this.reportMs);
      },
    };
    return reporter as Reporter;
  }

  #hooks() {
    return { follow: (command: HooksCommand) => void this.followed.push(command) };
  }

  #answers(): Answers {
    const add: Answers['add'] = async (probes) => {
      this.asked.push(...probes.map(({ kind }) => kind));
      return await Promise.resolve(this.unanswered);
    };
    return { add, now: 0, known: {} };
  }
}

describe('an order in the plan', () => {
  const back = (plan: TablePlan): Command => ({ kind: 'roll-back', plan, reason: REASON });

  test.each<[string, (plan: TablePlan) => Command, string]>([
    ['a restart', () => ({ kind: 'restart' }), 'restarted plan'],
    ['a roll-back', back, 'rolled back: w1 failed'],
    ['a retry', () => ({ kind: 'retry', order: ORDER }), 'retried 0'],
    ['a record', () => ({ kind: 'record', rollout: RUNNING }), 'recorded running'],
  ])('%s is written and reported, unless the plan has changed', async (_what, commandFor, told) => {
    const scene = new Scene();
    const before = scene.plan;
    expect(await scene.execute([commandFor(before)])).toBe('recorded');
    expect(scene.plan).not.toEqual(before);
    expect(scene.told).toEqual([told]);

    const late = new Scene();
    late.answer('replace plans', 409, 'Conflict');
    const unchanged = late.plan;
    expect(await late.execute([commandFor(unchanged)])).toBe('outdated');
    expect(late.plan).toEqual(unchanged);
    expect(late.told).toEqual([]);

    const alone = new Scene();
    expect(await alone.execute([commandFor(alone.plan)], { isAlone: true })).toBe('recorded');
  });

  test('a roll-back writes the earlier plan and names the run that failed', async () => {
    const scene = new Scene();
    const earlier = annotated(scene.plan, { 'example.com/earlier': 'yes' });
    await scene.execute([back(earlier)]);
    const { annotations } = scene.plan.metadata;
    expect(annotations).toMatchObject({ 'example.com/earlier': 'yes' });
    expect(JSON.stringify(annotations)).toContain('plan-uid/run-1');
  });

  test('comes before everything else of its turn', async () => {
    const probe: Command = { kind: 'probe', probe: { kind: 'decisions' } };
    const scene = new Scene();
    await scene.execute([{ kind: 'restart' }, probe, ...SIGNAL_COMMANDS]);
    expect(scene.asked).toEqual([]);
    expect(scene.api.calls).toEqual(['replace plans/plan']);
  });
});

describe('a probe', () => {
  const PROBES: readonly Command[] = [{ kind: 'probe', probe: { kind: 'decisions' } }];

  test('lets the next turn follow at once, and nothing is sent before it is answered', async () => {
    const scene = new Scene();
    expect(await scene.execute([...PROBES, ...SIGNAL_COMMANDS])).toBe('changed');
    expect([scene.asked, scene.told, scene.api.calls]).toEqual([['decisions'], [], []]);
  });

  test('that fails is reported', async () => {
    const scene = new Scene();
    scene.unanswered = [because('TargetRefused', 'no answer')];
    expect(await scene.execute(PROBES)).toBe('changed');
    expect(scene.told).toEqual(['failed: no answer']);
    expect(await scene.execute(PROBES, { isAlone: true })).toBe('changed');
  });
});

describe('hooks', () => {
  const HOOKS: HooksCommand = { kind: 'hooks', due: [], kept: ['one'], settled: [] };

  test('are followed, where this process carries out hooks', async () => {
    const scene = new Scene();
    await scene.execute([HOOKS]);
    expect(scene.followed).toEqual([HOOKS]);
    const alone = new Scene();
    expect(await alone.execute([HOOKS], { isAlone: true })).toEqual({});
    expect(alone.followed).toEqual([]);
  });

  test('are left alone while a record or a probe comes first', async () => {
    const scene = new Scene();
    await scene.execute([{ kind: 'record', rollout: RUNNING }, HOOKS]);
    expect(scene.followed).toEqual([]);
  });
});

describe('the next turn', () => {
  const WAKES: readonly Command[] = [
    { kind: 'wake', afterMs: 7000 },
    { kind: 'wake', afterMs: 5000 },
  ];

  test.each<[string, number | undefined, readonly Command[], number | undefined]>([
    ['is not planned if nothing is awaited', undefined, [], undefined],
    ['comes at the first wake', 9000, WAKES, 5000],
    ['comes once there is more to report', 3000, WAKES, 3000],
  ])('%s', async (_what, reportMs, commands, requeueAfterMs) => {
    const scene = new Scene();
    scene.reportMs = reportMs;
    expect(await scene.execute(commands)).toEqual({ requeueAfterMs });
    expect(scene.told).toEqual(['decided']);
  });

  test('comes a second after a conflict, whatever else is awaited', async () => {
    const scene = new Scene();
    scene.answer('replace nodes/w1', 409, 'Conflict');
    expect(await scene.execute([...SIGNAL_COMMANDS, ...WAKES])).toEqual({ requeueAfterMs: 1000 });
    expect(scene.told).toEqual(['w1 outdated', 'w2 written', 'decided']);
    const soon: Command = { kind: 'wake', afterMs: 500 };
    scene.answer('replace nodes/w1', 409, 'Conflict');
    expect(await scene.execute([...SIGNAL_COMMANDS, soon])).toEqual({ requeueAfterMs: 500 });
  });

  test('rests where the plan has many targets', async () => {
    const names = Array.from({ length: 3000 }, (_each, index) => `n${index}`);
    const rollout = buildRollout([buildStage('worker', names)]);
    const outcome = await new Scene().execute([], { rollout });
    expect(outcome).toEqual({ restMs: expect.any(Number) as unknown });
  });
});

describe('signals', () => {
  test('that are written are answered by the watch', async () => {
    const scene = new Scene();
    expect(await scene.execute(SIGNAL_COMMANDS)).toEqual({});
    expect(scene.told).toEqual(['w1 written', 'w2 written', 'decided']);
    const alone = new Scene();
    expect(await alone.execute(SIGNAL_COMMANDS, { isAlone: true })).toEqual({});
    expect(JSON.stringify(alone.api.read(nodes, 'w1').metadata)).toContain('sent');
  });

  test('that are refused for now are kept for a pause, in the words of the API server', async () => {
    const scene = new Scene();
    scene.answer('replace nodes/w1', 403, 'Forbidden', 'no right');
    expect(await scene.execute(SIGNAL_COMMANDS)).toBe('changed');
    expect(scene.told).toEqual(['w1 refused', 'w2 written']);
    expect(scene.refused).toEqual(['w1: the API server refuses to change its object: no right']);
    const waits = STAGE.targets.map((target) => scene.refusals.of(RUNNING, target) !== undefined);
    expect(waits).toEqual([true, false]);
  });

  test('that meet a conflict beside a refusal wait for the watch', async () => {
    const scene = new Scene();
    scene.answer('replace nodes/w1', 403, 'Forbidden', 'no right');
    scene.answer('replace nodes/w2', 409, 'Conflict');
    expect(await scene.execute(SIGNAL_COMMANDS)).toEqual({ requeueAfterMs: 1000 });
    expect(scene.refused).toHaveLength(1);
  });
});

describe('signals that are refused for good', () => {
  /** A dialect that creates one Job for each target. */
  const creating: Dialect<TablePlan> = {
    ...tableDialect,
    signal: {
      ...tableDialect.signal,
      send: (_world, _rollout, { target: { name } }) => ({
        kind: 'create',
        resource: jobs,
        object: { metadata: { name, namespace: 'default' } },
      }),
    },
  };

  function refusing(...names: readonly string[]): Scene {
    const scene = new Scene();
    scene.dialect = creating;
    for (const name of names)
      scene.answer(`create jobs/${name}`, 422, 'Invalid', `${name} is invalid`);
    return scene;
  }

  test('free the slots of their targets, and the record names the first of them', async () => {
    const scene = refusing('w1', 'w2');
    expect(await scene.execute(SIGNAL_COMMANDS)).toBe('changed');
    expect(scene.plan.status).toMatchObject({
      phase: 'running',
      reason: {
        code: 'TargetRefused',
        message: 'w1: the API server refused the write that starts the attempt: w1 is invalid',
      },
      stages: [
        {
          targets: ['w1', 'w2'].map((name) => ({
            key: `0/worker/${name}`,
            name,
            state: 'unsupported',
            since: later(0),
          })),
        },
      ],
    });
    expect(scene.told).toEqual(['w1 invalid', 'w2 invalid', 'recorded running']);
    // The pause after a temporary refusal does not apply to permanent refusals.
    expect(scene.refused).toEqual([]);
  });

  test('leave the other targets as they are', async () => {
    const scene = refusing('w2');
    expect(await scene.execute(SIGNAL_COMMANDS)).toBe('changed');
    expect(scene.plan.status).toMatchObject({
      reason: { message: expect.stringMatching(/^w2: /) as unknown },
      stages: [{ targets: [{ state: 'intended', since: later(-1000) }, { state: 'unsupported' }] }],
    });
  });

  test('are recorded by a later turn, if the plan has changed meanwhile', async () => {
    const scene = refusing('w1');
    scene.answer('replace plans', 409, 'Conflict');
    expect(await scene.execute(SIGNAL_COMMANDS)).toEqual({ requeueAfterMs: 1000 });
    expect(scene.plan.status).toBeUndefined();
    expect(scene.told).toEqual(['w1 invalid', 'w2 written', 'decided']);
  });
});

describe('node actions', () => {
  const isTainted = ({ api }: Scene, name: string): boolean =>
    (api.read(nodes, name).spec?.taints ?? []).length > 0;

  test('that are carried out are reported, and the next turn follows at once', async () => {
    const scene = new Scene();
    expect(await scene.execute([taint('w1')])).toBe('changed');
    expect(scene.told).toEqual(['ran taint of w1']);
    expect([isTainted(scene, 'w1'), isTainted(scene, 'w2')]).toEqual([true, false]);
    const alone = new Scene();
    expect(await alone.execute([taint('w1')], { isAlone: true })).toBe('changed');
  });

  test('that are refused are kept for a pause', async () => {
    const scene = new Scene();
    scene.answer('replace nodes/w1', 403, 'Forbidden', 'no right');
    expect(await scene.execute([taint('w1')])).toBe('changed');
    expect(scene.told).toEqual([]);
    expect(scene.refused).toEqual(['w1: the API server refuses to change its object: no right']);
  });

  test('that meet a conflict are decided anew soon', async () => {
    const scene = new Scene();
    scene.answer('replace nodes/w1', 409, 'Conflict');
    expect(await scene.execute([taint('w1')])).toEqual({ requeueAfterMs: 1000 });
    expect(scene.told).toEqual(['decided']);
  });

  test('are not carried out for a plan that has changed', async () => {
    const scene = new Scene();
    scene.api.before('get plans', () => scene.api.put(tableDialect.plans, scene.plan));
    expect(await scene.execute([taint('w1')])).toEqual({ requeueAfterMs: 1000 });
    expect(isTainted(scene, 'w1')).toBe(false);
  });

  test('end before an error of a signal is passed on', async () => {
    const scene = new Scene();
    scene.answer('replace nodes/w1', 500, 'InternalError');
    const replace: KubeClient['replace'] = async (resource, object, options) => {
      // The write of the node action on w2 takes longer than the signal for w1.
      if (object.metadata.name === 'w2')
        for (let turns = 0; turns < 20; turns++) await Promise.resolve();
      return await scene.api.client.replace(resource, object, options);
    };
    scene.client = { ...scene.api.client, replace };
    const commands = [...SIGNAL_COMMANDS.slice(0, 1), taint('w2')];
    await expect(scene.execute(commands)).rejects.toThrow('InternalError');
    expect(scene.told).toEqual(['ran taint of w2']);
    expect(isTainted(scene, 'w2')).toBe(true);
  });
});
