/**
 * Tests which node actions are not chosen: the actions that would remove cordons, taints and signals that are still
 * needed.
 */

import { expect, test } from 'vitest';
import {
  failed,
  NONE,
  sent,
  succeeded,
  working,
} from '../../../test/support/builders/observations.ts';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import { answered, NEVER, UNASKED, unanswered } from '../model/asked.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { NodeView, Observation, TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState, Rollout, Stage } from '../model/rollout.ts';
import { nodeActionsOf } from './choose-node-actions.ts';

const node = (name: string, more: Partial<NodeView> = {}): NodeView => ({
  name,
  unschedulable: false,
  cordonOwner: undefined,
  taintOwner: undefined,
  ...more,
});
const cordoned = (name: string): NodeView =>
  node(name, { unschedulable: true, cordonOwner: `plan-uid/${later(0)}` });
const tainted = (name: string): NodeView => node(name, { taintOwner: 'Plan.plan-uid' });
const asking = (waitsFor: 'drain' | 'uncordon', more: object = {}): Observation => ({
  kind: 'working',
  step: 'x',
  attempt: later(0),
  since: later(0),
  waitsFor,
  ...more,
});

type Facts = Record<string, Partial<TargetFacts>>;
interface Options {
  readonly rollout?: Partial<Rollout>;
  readonly more?: SnapshotChanges;
}

function actionsOf(stages: readonly Stage[], facts: Facts, { rollout, more }: Options = {}) {
  const snapshot = withParts(buildSnapshot(buildRollout(stages, rollout), facts), more);
  return nodeActionsOf(assess(snapshot, buildPolicy({ maxFailures: 9 }), T0));
}

const linesOf = (actions: ReturnType<typeof actionsOf>): string[] =>
  actions.map(({ kind, target }) => `${kind} ${target.name}`);
const one = (state: RecordedState): Stage[] => [buildStage('worker', [buildTarget('w1', state)])];
const aborted = { plan: { controls: { ...NO_CONTROLS, abort: 'wrong' } } };

test.each<[string, RecordedState, Observation, Partial<TargetFacts>, Options, string[]]>([
  ['a failed target that works still keeps its cordon', 'failed', working('Restart'), {}, {}, []],
  [
    'unless its node is not Ready',
    'failed',
    working('Restart'),
    { ready: false },
    {},
    ['clean-up w1'],
  ],
  [
    'a target that is tried again keeps the cordon of its half-done work',
    'pending',
    { kind: 'failed', message: '404', attempt: later(0), since: later(0), isHalfDone: true },
    {},
    {},
    [],
  ],
  [
    'a target that is tried again keeps the cordon of work that was cut off',
    'pending',
    { kind: 'none', begun: true },
    {},
    {},
    [],
  ],
  [
    'a target that is tried again does not keep the cordon of other work',
    'pending',
    failed('404'),
    {},
    {},
    ['clean-up w1'],
  ],
  ['a done target that another run signalled keeps it', 'done', sent(), {}, {}, []],
  ['a done target that works again keeps it', 'done', working('Restart'), {}, {}, []],
  ['a done target at rest does not', 'done', NONE, {}, {}, ['clean-up w1']],
  ['a failed target that was not answered is cancelled', 'failed', sent(), {}, {}, ['cancel w1']],
  ['a done target is never cancelled', 'done', sent(), {}, { rollout: { phase: 'done' } }, []],
  ['nor in an aborted rollout', 'done', sent(), {}, { more: aborted }, []],
  ['a failed target that asks for a drain gets none', 'failed', asking('drain'), {}, {}, []],
  [
    'a failed target that drains itself is not acknowledged',
    'failed',
    asking('uncordon'),
    { drainDelegation: answered(false) },
    {},
    [],
  ],
  [
    'a failed target without a Node is',
    'failed',
    asking('uncordon'),
    { node: undefined },
    {},
    ['acknowledge w1'],
  ],
  ['a done target is not', 'done', asking('uncordon'), { drainDelegation: answered(true) }, {}, []],
  [
    'nothing is done while the record cannot be read',
    'failed',
    sent(),
    {},
    { rollout: { unread: because('CannotDecide', 'x') } },
    [],
  ],
])('%s', (_name, state, observation, facts, options, expected) => {
  expect(
    linesOf(
      actionsOf(one(state), { w1: { observation, node: cordoned('w1'), ...facts } }, options),
    ),
  ).toEqual(expected);
});

const LATE = because('DeadlineExceeded', 'w1 did not report within its deadline');

test.each<[string, Options, object]>([
  ['the abort', { more: aborted }, because('Aborted', 'the plan was aborted: wrong')],
  [
    'the reason of the rollout',
    { rollout: { reason: because('PlanGone', 'its plan was deleted') } },
    because('PlanGone', 'its plan was deleted'),
  ],
  ['no reason is recorded', {}, LATE],
])('a cancelled signal says why: %s', (_name, options, reason) => {
  const [action] = actionsOf(one('failed'), { w1: { observation: sent() } }, options);
  expect(action).toMatchObject({ kind: 'cancel', reason });
});

const command = (index: number, ...targets: Parameters<typeof buildStage>[1]): Stage =>
  buildStage('worker', targets, { command: index, id: `${index}` });

test.each<[string, Stage[], Facts, string[]]>([
  [
    'a later command works on the node',
    [
      command(0, buildTarget('w1', 'done')),
      command(1, buildTarget('w1', 'intended')),
      command(2, 'w1'),
    ],
    {
      '0/worker/w1': { node: cordoned('w1') },
      '1/worker/w1': { node: cordoned('w1'), observation: sent() },
    },
    [],
  ],
  [
    'a later command works on another node, or on one without a Node',
    [
      command(0, buildTarget('w1', 'done')),
      command(1, buildTarget('w2', 'intended'), buildTarget('w3', 'intended')),
    ],
    {
      w1: { node: cordoned('w1') },
      w2: { node: node('w2'), observation: sent() },
      w3: { observation: sent() },
    },
    ['clean-up w1'],
  ],
  [
    'a later command is done with the node',
    [command(0, buildTarget('w1', 'done')), command(1, buildTarget('w1', 'done'), 'w2')],
    { w1: { node: cordoned('w1') } },
    ['clean-up w1', 'clean-up w1'],
  ],
])('our cordon on a node whose command is done: %s', (_name, stages, facts, expected) => {
  expect(linesOf(actionsOf(stages, facts)).filter((line) => line.endsWith('w1'))).toEqual(expected);
});

test('a taint goes with the rollout, also from a node whose turn never came', () => {
  const stages = [buildStage('worker', [buildTarget('w1', 'failed'), 'w2'])];
  const facts = { w1: { observation: failed('404') }, w2: { node: tainted('w2') } };
  expect(linesOf(actionsOf(stages, facts, { rollout: { phase: 'failed' } }))).toEqual([
    'clean-up w2',
  ]);
  expect(linesOf(actionsOf(stages, facts))).toEqual([]);
});

test('a taint stays on a node whose turn comes in a later command', () => {
  const stages = [command(0, buildTarget('w1', 'intended')), command(1, 'w2')];
  expect(
    linesOf(actionsOf(stages, { w1: { observation: sent() }, w2: { node: tainted('w2') } })),
  ).toEqual([]);
});

const evicting: Partial<TargetFacts> = {
  node: cordoned('w1'),
  drainDelegation: answered(true),
  observation: asking('drain'),
  drain: { kind: 'draining', since: T0, left: 1 },
};

test('only nodes whose turn is to come get a taint', () => {
  const stage = buildStage('worker', [
    buildTarget('w1', 'intended'),
    buildTarget('w2', 'done'),
    'w3',
    buildTarget('w4'),
    'w5',
  ]);
  const facts = {
    w1: evicting,
    w2: { node: node('w2') },
    w4: { node: node('w4', { unschedulable: true }) },
    w5: { node: node('w5') },
  };
  expect(linesOf(actionsOf([stage], facts))).toEqual(['taint w5']);
  expect(
    linesOf(actionsOf([stage], facts, { more: aborted })).filter((line) =>
      line.startsWith('taint'),
    ),
  ).toEqual([]);
});

test('twenty nodes get their taint at a time', () => {
  const names = Array.from({ length: 25 }, (_, index) => `n${index}`);
  const facts = Object.fromEntries(names.map((name) => [name, { node: node(name) }]));
  const stage = buildStage('worker', [buildTarget('w1', 'intended'), ...names]);
  expect(actionsOf([stage], { w1: evicting, ...facts })).toHaveLength(20);
});

test.each<[string, TargetFacts['drainPreview'], string[]]>([
  ['it would evict pods', answered({ evictable: 1, obstacles: [], refused: [] }), ['taint w2']],
  ['it would evict none', answered({ evictable: 0, obstacles: [], refused: [] }), []],
  ['nobody looked yet', UNASKED, []],
  ['nobody can tell', unanswered({ reason: because('CannotDecide', 'x'), recheckMs: 1 }), []],
  ['nothing is drained', NEVER, []],
])(
  'the next nodes get their taint before the first drain begins, where %s',
  (_name, drainPreview, expected) => {
    const stage = buildStage('worker', [buildTarget('w1', 'intended'), 'w2']);
    const w1 = { node: node('w1'), observation: sent(), drainPreview };
    expect(linesOf(actionsOf([stage], { w1, w2: { node: node('w2') } }))).toEqual(expected);
    const pending = buildStage('worker', [
      buildTarget('w1', 'done'),
      buildTarget('w0', 'intended'),
      'w2',
    ]);
    const w0 = { observation: succeeded() };
    expect(
      linesOf(actionsOf([pending], { w1: { drainPreview }, w0, w2: { node: node('w2') } })),
    ).toEqual([]);
  },
);
