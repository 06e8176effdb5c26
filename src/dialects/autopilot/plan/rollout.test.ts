/** Proves how a Plan becomes a rollout: with new targets, or exactly as recorded. */
import { describe, expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import {
  buildPlan,
  buildUpdate,
  listed,
  SHA256,
  selected,
} from '../../../../test/support/builders/plans.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { later, MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import { recordedObjects } from '../../../../test/support/recordings.ts';
import type { CommandStatus, Plan, TargetStatus } from '../../../api/autopilot/plan.ts';
import type { Rollout, Stage } from '../../../engine/model/rollout.ts';
import { resolve } from './rollout.ts';

const blue = { labels: { pool: 'blue' } };
const world = buildWorld(
  [buildControlNode('c3'), buildControlNode('c1'), buildControlNode('c2')],
  [buildNode('w2', blue), buildNode('w1', blue), buildNode('w3')],
);
const NOW = T0 + MINUTE;

const resolved = (plan: Plan): Rollout => resolve(plan, world, NOW);
const namesIn = ({ stages }: Rollout): object =>
  Object.fromEntries(stages.map(({ id, targets }) => [id, targets.map(({ name }) => name)]));
const entry = (name: string, state = 'SignalPending'): TargetStatus => ({
  name,
  state,
  lastUpdatedTimestamp: later(0),
});
const command = (id: number, more: Partial<CommandStatus> = {}): CommandStatus => ({
  id,
  state: 'SchedulableWait',
  ...more,
});

describe('a new plan', () => {
  test('a Plan without an id uses its uid as id, also after an edit', () => {
    const { spec, ...plan } = buildPlan();
    const unnamed: Plan = { ...plan, spec: { commands: spec.commands } };
    expect(resolved(unnamed)).toMatchObject({ id: 'plan-uid', problems: [] });
    const edited = { ...unnamed, metadata: { ...unnamed.metadata, generation: 7 } };
    expect(resolved(edited).id).toBe('plan-uid');
  });

  test('without an id has another id in each further run, by its generation', () => {
    const { spec, metadata, ...plan } = buildPlan();
    const annotations = { 'upgrade.refit.dev/restart': JSON.stringify({ generation: 4 }) };
    const restarted: Plan = {
      ...plan,
      metadata: { ...metadata, generation: 4, annotations },
      spec: { commands: spec.commands },
    };
    expect(resolved(restarted).id).toBe('plan-uid-g4');
  });

  test('becomes a stage of controllers and a stage of workers', () => {
    const rollout = resolved(buildPlan());
    expect(rollout).toMatchObject({
      source: {
        apiVersion: 'autopilot.k0sproject.io/v1beta2',
        kind: 'Plan',
        name: 'autopilot',
        uid: 'plan-uid',
        created: later(0),
      },
      id: 'id1',
      phase: 'new',
      blocked: false,
      reason: undefined,
      problems: [],
    });
    expect(namesIn(rollout)).toEqual({
      '0/controllers': ['c1', 'c2', 'c3'],
      '0/workers': ['w1', 'w2'],
    });
  });

  test('gives each stage its role, its slots and its payloads', () => {
    const [controllers, workers] = resolved(buildPlan()).stages;
    const version = 'v1.36.3+k0s.2';
    const payloads = { 'linux-amd64': { url: 'https://example.com/k0s', sha256: SHA256 } };
    expect(controllers).toMatchObject({
      role: 'controller',
      command: 0,
      maxInFlight: 1,
      forced: false,
      version,
      payloads,
    });
    expect(workers).toMatchObject({
      role: 'worker',
      command: 0,
      maxInFlight: 2,
      forced: false,
      version,
      payloads,
    });
    expect(workers?.targets[0]).toEqual({
      key: '0/worker/w1',
      name: 'w1',
      state: 'pending',
      since: later(MINUTE),
    });
  });

  test.each<[string, Partial<Stage>, Parameters<typeof buildUpdate>[0]]>([
    ['forced', { forced: true }, { forceupdate: true }],
    [
      'one worker at a time where nothing is said',
      { maxInFlight: 1 },
      { targets: { workers: listed('w1') } },
    ],
    [
      'a sha256 in small letters, and none where it is empty',
      {
        payloads: {
          'linux-amd64': { url: 'http://a', sha256: SHA256 },
          'linux-arm64': { url: 'http://b' },
        },
      },
      {
        platforms: {
          'linux-amd64': { url: 'http://a', sha256: SHA256.toUpperCase() },
          'linux-arm64': { url: 'http://b', sha256: '' },
        },
      },
    ],
  ])('%s', (_name, wanted, update) => {
    expect(
      resolved(buildPlan({ commands: [{ k0supdate: buildUpdate(update) }] })).stages[1],
    ).toMatchObject(wanted);
  });

  test('controllers are upgraded one at a time, whatever their limits say', () => {
    const targets = { controllers: { ...listed('c1'), limits: { concurrent: 3 } } };
    const [stage] = resolved(
      buildPlan({ commands: [{ k0supdate: buildUpdate({ targets }) }] }),
    ).stages;
    expect(stage?.maxInFlight).toBe(1);
  });

  test('two commands: the same node is a target in each, and each has its own payload', () => {
    const first = buildUpdate({ version: 'v1.35.9+k0s.0' });
    const rollout = resolved(
      buildPlan({ commands: [{ k0supdate: first }, { k0supdate: buildUpdate() }] }),
    );
    expect(Object.keys(namesIn(rollout))).toEqual([
      '0/controllers',
      '0/workers',
      '1/controllers',
      '1/workers',
    ]);
    const keys = rollout.stages.flatMap(({ targets }) => targets.map(({ key }) => key));
    expect(new Set(keys).size).toBe(keys.length);
    expect(rollout.stages.map(({ version }) => version)).toEqual([
      'v1.35.9+k0s.0',
      'v1.35.9+k0s.0',
      'v1.36.3+k0s.2',
      'v1.36.3+k0s.2',
    ]);
  });

  test('with a problem has no targets: nothing is looked for by a selector that may be wrong', () => {
    const targets = { workers: selected('pool blue') };
    const rollout = resolved(buildPlan({ commands: [{ k0supdate: buildUpdate({ targets }) }] }));
    expect([rollout.stages, rollout.problems.length]).toEqual([[], 1]);
  });
});

describe('a recorded plan', () => {
  const status = {
    state: 'Schedulable',
    commands: [
      command(0, {
        k0supdate: {
          controllers: [entry('c2', 'SignalCompleted'), entry('c9', 'SignalSent')],
          workers: [entry('w3'), entry('w1')],
        },
      }),
    ],
  };

  test('a started plan keeps the targets of its record in their order, whatever a selector finds now', () => {
    const rollout = resolved(buildPlan({}, status));
    expect(namesIn(rollout)).toEqual({ '0/controllers': ['c2', 'c9'], '0/workers': ['w3', 'w1'] });
    expect(rollout.stages[0]?.targets.map(({ state, since }) => [state, since])).toEqual([
      ['done', later(0)],
      ['intended', later(0)],
    ]);
    expect([rollout.phase, rollout.blocked]).toEqual(['running', true]);
  });

  test('takes version, limits and id from the plan as it stands', () => {
    const update = buildUpdate({
      version: 'v1.36.4+k0s.0',
      targets: { workers: { ...listed(), limits: { concurrent: 9 } } },
    });
    const rollout = resolved(buildPlan({ id: 'other', commands: [{ k0supdate: update }] }, status));
    expect([rollout.id, rollout.stages[1]?.maxInFlight]).toEqual(['other', 9]);
    expect(rollout.stages[1]?.version).toBe('v1.36.4+k0s.0');
  });

  const targets = { controllers: listed('c2', 'c9'), workers: listed('w3', 'w1') };
  const dashed = (state: string, forceupdate: boolean): Plan => {
    const update = buildUpdate({ version: 'v1.36.3-k0s.2', forceupdate, targets });
    return buildPlan({ commands: [{ k0supdate: update }] }, { ...status, state });
  };

  test.each([
    ['runs by force, which the original completes', 'SchedulableWait', true, 0],
    ['waits for a node to report it', 'SchedulableWait', false, 1],
    ['is done by force', 'Completed', true, 0],
    ['failed', 'ApplyFailed', false, 0],
  ])('a version with the dash of an image tag that %s', (_name, state, isForced, problems) => {
    const rollout = resolved(dashed(state, isForced));
    expect([rollout.problems.length, rollout.edit]).toEqual([problems, undefined]);
    // The engine always follows targets in flight until they end.
    expect(namesIn(rollout)).toEqual({ '0/controllers': ['c2', 'c9'], '0/workers': ['w3', 'w1'] });
  });

  test('an entry without lists is a command without targets, not a new one', () => {
    const rollout = resolved(buildPlan({}, { state: 'SchedulableWait', commands: [command(0)] }));
    expect(namesIn(rollout)).toEqual({ '0/controllers': [], '0/workers': [] });
  });

  test('a command that is gone from the plan keeps its targets, without payload: they may be in flight', () => {
    const both = {
      ...status,
      commands: [
        ...status.commands,
        command(1, { k0supdate: { workers: [entry('w1', 'SignalSent')] } }),
      ],
    };
    const rollout = resolved(buildPlan({}, both));
    expect(rollout.problems).toHaveLength(1);
    expect(rollout.stages.at(-1)).toMatchObject({
      id: '1/workers',
      payloads: {},
      targets: [{ state: 'intended' }],
    });
  });

  test('a command that was added gets no targets: it was not there when the plan started', () => {
    const rollout = resolved(
      buildPlan({ commands: [{ k0supdate: buildUpdate() }, { k0supdate: buildUpdate() }] }, status),
    );
    expect(rollout.problems).toHaveLength(1);
    expect(Object.keys(namesIn(rollout))).toEqual(['0/controllers', '0/workers']);
  });

  test('the image bundle of a plan becomes a separate stage', () => {
    const airgap = { version: 'v1.36.3+k0s.2', platforms: {}, workers: listed('w1') };
    const recorded = command(0, { airgapupdate: { workers: [entry('w1', 'SignalSent')] } });
    const plan = buildPlan(
      { commands: [{ airgapupdate: airgap }] },
      { state: 'SchedulableWait', commands: [recorded] },
    );
    const stage = {
      id: '0/bundles',
      role: 'worker',
      procedure: 'airgapupdate',
      keepsVersion: true,
    };
    expect(resolved(plan)).toMatchObject({
      phase: 'running',
      stages: [{ ...stage, targets: [{ state: 'intended' }] }],
    });
  });

  test('a command with both updates runs the bundle first, then controllers, then workers', () => {
    const airgapupdate = { version: 'v1.36.3', platforms: {}, workers: listed('w1') };
    const both = buildPlan({ commands: [{ k0supdate: buildUpdate(), airgapupdate }] });
    const recorded = {
      state: 'SchedulableWait',
      commands: [command(0, { airgapupdate: { workers: [] } })],
    };
    expect(resolved({ ...both, status: recorded }).stages.map(({ id }) => id)).toEqual([
      '0/bundles',
      '0/controllers',
      '0/workers',
    ]);
  });

  test('reads its reason back', () => {
    const failed = {
      state: 'ApplyFailed',
      commands: [command(0, { state: 'ApplyFailed', description: 'w1: 404' })],
    };
    expect(resolved(buildPlan({}, failed)).reason).toEqual({
      code: 'TargetFailed',
      message: 'w1: 404',
    });
  });

  test('as a real leader left it', () => {
    const plan = recordedObjects().find(({ kind }) => kind === 'Plan') as Plan;
    const rollout = resolved(plan);
    expect(rollout.phase).toBe('done');
    expect(rollout.problems).toEqual([]);
    expect(namesIn(rollout)).toEqual({
      '0/controllers': ['c1', 'c2', 'c3'],
      '0/workers': ['w1', 'w2'],
    });
    expect(
      rollout.stages.every(({ targets }) => targets.every(({ state }) => state === 'done')),
    ).toBe(true);
  });
});

test('looks at an ended plan read its list of nodes once', () => {
  let reads = 0;
  const nodes = new Proxy(['w1', 'w2'], {
    get: (list, key, receiver) => {
      if (key === '0') reads++;
      return Reflect.get(list, key, receiver) as unknown;
    },
  });
  const update = buildUpdate({ targets: { workers: { discovery: { static: { nodes } } } } });
  const entries = ['w1', 'w2'].map((name) => entry(name, 'SignalCompleted'));
  const commands = [command(0, { state: 'Completed', k0supdate: { workers: entries } })];
  const plan = buildPlan({ commands: [{ k0supdate: update }] }, { state: 'Completed', commands });
  expect(resolved(plan).edit).toBeUndefined();
  const readsOfFirst = reads;
  expect([readsOfFirst > 0, resolved(plan).edit, reads]).toEqual([true, undefined, readsOfFirst]);
});

test('a node that was added to an ended plan counts only while it is no controller', () => {
  const update = buildUpdate({ targets: { workers: listed('w1', 'w9') } });
  const done = [entry('w1', 'SignalCompleted')];
  const commands = [command(0, { state: 'Completed', k0supdate: { workers: done } })];
  const plan = buildPlan({ commands: [{ k0supdate: update }] }, { state: 'Completed', commands });
  const labels = { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' };
  const controller = buildWorld([buildControlNode('w9', { labels })], []);
  expect(resolved(plan).edit).toBe('w9 is listed now but was not part of the plan when it ended');
  expect(resolve(plan, controller, NOW).edit).toBeUndefined();
});
