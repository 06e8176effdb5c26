/** Proves that the status of a Plan uses the state words of the original, and that no field is lost. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { arbitrarySituation } from '../../../../test/support/builders/arbitrary-snapshots.ts';
import { decide } from '../../../../test/support/builders/decisions.ts';
import { buildPlan, buildUpdate, listed } from '../../../../test/support/builders/plans.ts';
import { buildRollout } from '../../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../../test/support/builders/targets.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { later, MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import { recordedObjects } from '../../../../test/support/recordings.ts';
import type { CommandStatus, Plan } from '../../../api/autopilot/plan.ts';
import type { Rollout } from '../../../engine/model/rollout.ts';
import { withReasonRead } from '../../../engine/reasons/recorded.ts';
import { project, resolve } from './rollout.ts';

const NOBODY = buildWorld([], []);
const reason = { code: 'TargetFailed', message: 'w1: 404' } as const;
const done = (name: string) => buildTarget(name, 'done', { since: later(MINUTE) });
const planOf = (commands: number, status?: Plan['status']): Plan =>
  buildPlan(
    { commands: Array.from({ length: commands }, () => ({ k0supdate: buildUpdate() })) },
    status,
  );

/** Returns the state of the plan and of each command. A command with a description is returned together with it. */
function wordsOf(rollout: Rollout, plan: Plan): unknown[] {
  const { status } = project(rollout, plan);
  return [
    status?.state,
    ...(status?.commands ?? []).map(({ state, description }) =>
      description ? [state, description] : state,
    ),
  ];
}

test('a running plan in full', () => {
  const stages = [
    buildStage('controller', [done('c1'), buildTarget('c2', 'intended')]),
    buildStage('worker', ['w1', buildTarget('w2', 'missing'), buildTarget('w3', 'unsupported')]),
  ];
  const at = (name: string, state: string, since = later(0)): object => ({
    name,
    state,
    lastUpdatedTimestamp: since,
  });
  expect(project(buildRollout(stages), planOf(1)).status).toEqual({
    state: 'SchedulableWait',
    commands: [
      {
        id: 0,
        state: 'SchedulableWait',
        k0supdate: {
          controllers: [at('c1', 'SignalCompleted', later(MINUTE)), at('c2', 'SignalSent')],
          workers: [
            at('w1', 'SignalPending'),
            at('w2', 'SignalMissingNode'),
            at('w3', 'SignalMissingPlatform'),
          ],
        },
      },
    ],
  });
});

test('lists that are empty are left out, as the original does', () => {
  const { status } = project(
    buildRollout([buildStage('controller', []), buildStage('worker', ['w1'])]),
    planOf(1),
  );
  expect(Object.keys(status?.commands[0]?.k0supdate ?? {})).toEqual(['workers']);
  const empty = project(
    buildRollout([buildStage('controller', []), buildStage('worker', [])]),
    planOf(1),
  );
  expect(empty.status?.commands).toEqual([{ id: 0, state: 'Completed' }]);
});

describe('the states of plan and commands', () => {
  const first = buildStage('worker', [done('w1')]);
  const second = buildStage('worker', ['w1'], { command: 1 });
  const failed = buildStage('worker', [buildTarget('w1', 'failed')], { command: 1 });
  test.each<[string, Rollout, number, unknown[]]>([
    [
      'running',
      buildRollout([buildStage('worker', ['w1'])]),
      1,
      ['SchedulableWait', 'SchedulableWait'],
    ],
    [
      'blocked',
      buildRollout([buildStage('worker', ['w1'])], { blocked: true }),
      1,
      ['Schedulable', 'Schedulable'],
    ],
    ['done', buildRollout([first], { phase: 'done' }), 1, ['Completed', 'Completed']],
    [
      'the second command of two: the plan mirrors the active one',
      buildRollout([first, second], { blocked: true }),
      2,
      ['Schedulable', 'Completed', 'Schedulable'],
    ],
    [
      'the first command of two',
      buildRollout([buildStage('worker', ['w1']), second], { blocked: true }),
      2,
      ['Schedulable', 'Schedulable', 'SchedulableWait'],
    ],
    [
      'failed in the second command: the reason stands there',
      buildRollout([first, failed], { phase: 'failed', reason }),
      2,
      ['ApplyFailed', 'Completed', ['ApplyFailed', 'w1: 404']],
    ],
    [
      'incomplete in the second command: the first one is completed all the same',
      buildRollout([first, buildStage('worker', [buildTarget('w1', 'missing')], { command: 1 })], {
        phase: 'incomplete',
        reason: { code: 'TargetMissing', message: 'worker w1 does not exist' },
      }),
      2,
      ['IncompleteTargets', 'Completed', ['IncompleteTargets', 'worker w1 does not exist']],
    ],
    [
      'refused before it began: every command says so, the reason stands in the first',
      buildRollout([], {
        phase: 'invalid',
        reason: { code: 'InvalidPlan', message: 'spec.id must name this run' },
      }),
      2,
      ['Warning', ['Warning', 'spec.id must name this run'], 'Warning'],
    ],
    [
      'refused for having no command: the reason needs a place',
      buildRollout([], {
        phase: 'invalid',
        reason: { code: 'InvalidPlan', message: 'spec.commands' },
      }),
      0,
      ['Warning', ['Warning', 'spec.commands']],
    ],
  ])('%s', (_name, rollout, commands, words) => {
    expect(wordsOf(rollout, planOf(commands))).toEqual(words);
  });
});

describe('what was there', () => {
  const recorded = {
    state: 'SchedulableWait',
    extra: 'of the plan',
    commands: [
      {
        id: 0,
        state: 'SchedulableWait',
        description: 'old',
        extra: 'of the command',
        k0supdate: {
          extra: 'of the update',
          workers: [
            {
              name: 'w1',
              state: 'SignalSent',
              lastUpdatedTimestamp: later(0),
              extra: 'of the target',
            },
          ],
        },
      },
    ],
  };

  test('a status update keeps unknown fields of the plan, its commands and its targets', () => {
    const rollout = buildRollout([buildStage('worker', [done('w1')])], { phase: 'done' });
    const { status } = project(rollout, planOf(1, recorded));
    expect(status).toEqual({
      state: 'Completed',
      extra: 'of the plan',
      commands: [
        {
          id: 0,
          state: 'Completed',
          extra: 'of the command',
          k0supdate: {
            extra: 'of the update',
            workers: [
              {
                name: 'w1',
                state: 'SignalCompleted',
                lastUpdatedTimestamp: later(MINUTE),
                extra: 'of the target',
              },
            ],
          },
        },
      ],
    });
  });

  test('of a command that is not ours to carry out stays as its own leader wrote it', () => {
    const bundle: CommandStatus = {
      id: 0,
      state: 'Completed',
      airgapupdate: {
        workers: [{ name: 'w1', state: 'SignalCompleted', lastUpdatedTimestamp: later(0) }],
      },
    };
    const update: CommandStatus = {
      id: 1,
      state: 'SchedulableWait',
      k0supdate: { workers: [{ name: 'w1', state: 'SignalSent', lastUpdatedTimestamp: later(0) }] },
    };
    const airgapupdate = { version: 'v1.36.3+k0s.2', platforms: {}, workers: listed('w1') };
    const commands = [{ airgapupdate }, { k0supdate: buildUpdate() }];
    const plan = buildPlan({ commands }, { state: 'SchedulableWait', commands: [bundle, update] });
    const rollout = buildRollout([buildStage('worker', [done('w1')], { command: 1 })]);
    expect(project(rollout, plan).status?.commands[0]).toEqual(bundle);
  });

  test.each([
    ['a command more', 2],
    ['a command less', 0],
  ])(
    'decides how many entries there are: %s in the plan stays visible as a change',
    (_name, commands) => {
      const rollout = buildRollout([buildStage('worker', [done('w1')])]);
      expect(project(rollout, planOf(commands, recorded)).status?.commands).toHaveLength(1);
    },
  );

  test('changes nothing but the status, and does not change the given plan', () => {
    const plan = planOf(1, recorded);
    const copy = structuredClone(plan);
    const after = project(buildRollout([buildStage('worker', [done('w1')])]), plan);
    expect(plan).toEqual(copy);
    expect({ ...after, status: undefined }).toEqual({ ...plan, status: undefined });
  });
});

test('a status that a real leader left is the same after it was read and written', () => {
  const plan = recordedObjects().find(({ kind }) => kind === 'Plan') as Plan;
  expect(project(resolve(plan, NOBODY, T0), plan)).toEqual(plan);
});

test('whatever is recorded is read back as it was decided: another leader goes on as if it had been there', () => {
  const shapeOf = ({ stages, phase, blocked, reason: why }: Rollout): unknown => ({
    stages: stages.map(({ id, role, targets }) => ({ id, role, targets })),
    phase,
    blocked,
    why,
  });
  fc.assert(
    fc.property(arbitrarySituation(), ({ snapshot, policy, now }) => {
      const { record } = decide(snapshot, policy, now);
      if (!record) return;
      const read = withReasonRead(resolve(project(record, planOf(2)), NOBODY, T0));
      // Only a failure that is decided while the rollout runs names its target as data already.
      expect(shapeOf(read)).toEqual(shapeOf(withReasonRead(record)));
    }),
    { numRuns: 250 },
  );
});
