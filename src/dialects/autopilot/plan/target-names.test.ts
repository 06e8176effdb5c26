/** Proves what a Plan is told about names that do not exist, and about nodes that its lists leave out. */
import { describe, expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import {
  buildPlan,
  buildUpdate,
  listed,
  selected,
} from '../../../../test/support/builders/plans.ts';
import { preview, previewIn, textOf } from '../../../../test/support/builders/previews.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import type { K0sUpdate, TargetSpec } from '../../../api/autopilot/plan.ts';
import { leftOut, meantBy } from './target-names.ts';

const world = buildWorld(
  [buildControlNode('c1'), buildControlNode('c2.example.com')],
  [
    buildNode('w1'),
    buildNode('w2.example.com'),
    buildNode('pool-a-7', { labels: { 'node-role.kubernetes.io/control-plane': 'true' } }),
  ],
);

test.each([
  ['worker', 'W1', 'perhaps w1 is meant'],
  ['worker', 'w1.example.com', 'perhaps w1 is meant'],
  ['worker', 'W2', 'perhaps w2.example.com is meant'],
  ['worker', 'pol-a-7', 'perhaps pool-a-7 is meant'],
  ['worker', 'pool-a-9', undefined],
  ['worker', 'c1', 'a controller has this name, so list it under targets.controllers'],
  ['controller', 'C2', 'perhaps c2.example.com is meant'],
  [
    'controller',
    'w1',
    'a Node that is no controller has this name, so list it under targets.workers',
  ],
  ['worker', 'storage-17', undefined],
] as const)('for the unknown %s %s the hint is: %s', (role, name, hint) => {
  expect(meantBy(name, role, world)).toBe(hint);
});

test('the reason of a Plan that lists a name in upper case names the node that is meant', async () => {
  const targets = { controllers: listed('c1', 'c2'), workers: listed('W1') };
  const file = buildPlan({ commands: [{ k0supdate: buildUpdate({ targets }) }] });
  expect(textOf(await previewIn({ file }))).toContain(
    'problem  W1 does not exist as a worker: perhaps w1 is meant\n',
  );
});

test('a controller that is listed by the name of its Node is named by its ControlNode', () => {
  const machine = {
    ...buildControlNode('machine-0', {
      annotations: { 'autopilot.k0sproject.io/mode': 'controller+worker' },
    }),
    status: { addresses: [{ type: 'Hostname', address: 'ip-10-0-0-7' }] },
  };
  const other = buildWorld([machine], [buildNode('ip-10-0-0-7')]);
  expect(meantBy('ip-10-0-0-7', 'controller', other)).toBe(
    'its Node has this name, but its ControlNode is called machine-0, so list that name',
  );
});

const AT = 'spec.commands[0].k0supdate.targets';
const planFor = (targets: K0sUpdate['targets']) =>
  buildPlan({ commands: [{ k0supdate: buildUpdate({ targets }) }] });
const told = (controllers: TargetSpec, workers?: TargetSpec): string[] =>
  leftOut(planFor({ controllers, ...(workers ? { workers } : {}) }), world);

describe('a Plan is warned', () => {
  test('if it lists a controller only among the workers, because k0s then leaves it out', () => {
    const both = buildWorld([buildControlNode('c1')], [buildNode('c1'), buildNode('w1')]);
    const workers = listed('c1', 'w1');
    expect(leftOut(planFor({ workers }), both)).toEqual([
      `c1 in ${AT}.workers runs a controller, so the update of workers leaves it out: list it under targets.controllers`,
    ]);
    expect(leftOut(planFor({ controllers: listed('c1'), workers }), both)).toEqual([]);
  });

  test('if the list of workers is empty although the cluster has workers', () => {
    const empty = `${AT}.workers.discovery.static lists no node, so no worker is updated`;
    const names = 'pool-a-7, w1, w2.example.com';
    expect(told(listed('c1'), { discovery: { static: {} } })).toEqual([`${empty}: ${names}`]);
    expect(told(listed('c1'), listed())).toEqual([`${empty}: ${names}`]);
    const both = { discovery: { static: {}, selector: {} } };
    expect(told(listed('c1'), both)).toEqual([
      `${empty}, and the selector does not count: ${names}`,
    ]);
    const alone = buildWorld([buildControlNode('c1')], []);
    const plan = planFor({ controllers: listed('c1'), workers: { discovery: { static: {} } } });
    expect(leftOut(plan, alone)).toEqual([]);
  });

  test('if its selector of controllers has a label that only Nodes have', () => {
    expect(told(selected('node-role.kubernetes.io/control-plane=true'))).toEqual([
      `the labels in ${AT}.controllers.discovery.selector are on Nodes such as pool-a-7, but controllers are selected by the labels of their ControlNodes: leave the labels out to select all controllers`,
    ]);
    expect(told(selected(''), selected('pool=blue'))).toEqual([]);
    expect(told(selected('pool=blue'))).toEqual([]);
  });

  test('in its preview', async () => {
    const plan = planFor({
      controllers: listed('c1', 'c2'),
      workers: { discovery: { static: {} } },
    });
    const view = await preview('autopilot', plan, [buildNode('w1')]);
    expect(textOf(view)).toContain(`warning  ${AT}.workers.discovery.static lists no node`);
  });
});

test('a Plan that has ended, or that is refused, is not warned about nodes that it leaves out', () => {
  const plan = planFor({ controllers: listed('c1'), workers: { discovery: { static: {} } } });
  expect(leftOut(plan, world)).toHaveLength(1);
  expect(leftOut({ ...plan, status: { state: 'Completed', commands: [] } }, world)).toEqual([]);
  expect(leftOut({ ...plan, metadata: { ...plan.metadata, name: 'other' } }, world)).toEqual([]);
});
