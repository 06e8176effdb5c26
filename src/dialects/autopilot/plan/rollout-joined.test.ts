/** Tests which nodes a running Plan selects or lists and does not record, because they joined after it began. */
import { expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import {
  buildPlan,
  buildUpdate,
  listed,
  selected,
} from '../../../../test/support/builders/plans.ts';
import { recorded, statusOf } from '../../../../test/support/builders/views.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { T0 } from '../../../../test/support/clock/times.ts';
import type { Plan, TargetSpec } from '../../../api/autopilot/plan.ts';
import { withStages } from '../../../engine/model/rollout.ts';
import { autopilot } from './autopilot-dialect.ts';
import { joinedTargets, resolve } from './rollout.ts';

const WORLD = buildWorld(
  [buildControlNode('c1'), buildControlNode('c2')],
  [buildNode('w1'), buildNode('w2', { labels: { pool: 'blue' } }), buildNode('c2')],
);

function planOf(
  workers: TargetSpec,
  state = 'SchedulableWait',
  names = { w1: 'SignalSent' },
): Plan {
  const update = buildUpdate({ targets: { controllers: selected(''), workers } });
  const recordedNow = statusOf(state, recorded({ c1: 'SignalCompleted' }), recorded(names));
  return buildPlan({ commands: [{ k0supdate: update }] }, recordedNow);
}

const shown = (plan: Plan): string[] =>
  joinedTargets(plan, WORLD, T0).map(({ target: { key } }) => key);

test.each<[string, Plan, string[]]>([
  ['a selector', planOf(selected('')), ['0/controller/c2', '0/worker/w2']],
  ['a selector that leaves it out', planOf(selected('pool=red')), ['0/controller/c2']],
  ['a list that was edited', planOf(listed('w1', 'w2')), ['0/controller/c2', '0/worker/w2']],
  ['a name without a Node', planOf(listed('w1', 'w7')), ['0/controller/c2']],
  ['a Plan that has ended', planOf(selected(''), 'Completed'), []],
  ['a Plan that has not begun', planOf(selected(''), ''), []],
  ['a selector that cannot be read', planOf(selected('a in (')), []],
])('%s', (_, plan, keys) => {
  expect(shown(plan)).toEqual(keys);
});

test('a node that was taken up is recorded as k0s records those of the start', () => {
  const plan = planOf(selected(''));
  const rollout = resolve(plan, WORLD, T0);
  const [, joined] = joinedTargets(plan, WORLD, T0);
  const stages = rollout.stages.map((stage) =>
    joined && stage.id === joined.stage
      ? { ...stage, targets: [...stage.targets, joined.target] }
      : stage,
  );
  const after = autopilot.project({ ...rollout, stages }, plan, T0);
  expect(after.status?.commands[0]?.k0supdate?.workers?.at(-1)).toEqual({
    name: 'w2',
    state: 'SignalPending',
    lastUpdatedTimestamp: '2026-11-20T08:00:00Z',
  });
  const names = withStages(resolve(after, WORLD, T0)).map(({ target }) => target.name);
  expect(names).toEqual(['c1', 'w1', 'w2']);
  expect(shown(after)).toEqual(['0/controller/c2']);
});

test('a record that is full takes up no node', () => {
  const names = Object.fromEntries(
    ['w1', ...Array.from({ length: 4_999 }, (_, index) => `x${index}`)].map((name) => [
      name,
      'SignalCompleted',
    ]),
  ) as { w1: string };
  const joined = joinedTargets(planOf(selected(''), 'SchedulableWait', names), WORLD, T0);
  expect(joined.map(({ obstacle }) => obstacle)).toEqual([
    'the record of the plan has no room for it',
    'the record of the plan has no room for it',
  ]);
});
