/** Proves which names a target specification selects, and in which order. */
import { describe, expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import { listed, selected } from '../../../../test/support/builders/plans.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import type { TargetSpec } from '../../../api/autopilot/plan.ts';
import type { Node } from '../../../kube/resources.ts';
import { MODE_ANNOTATION } from '../../../signal/names.ts';
import { discover, withoutControllers } from './autopilot-signal.ts';

const cordoned: Node = {
  ...buildNode('w3', { labels: { pool: 'green' } }),
  spec: { unschedulable: true },
};
const world = buildWorld(
  [buildControlNode('c2', { labels: { foo: 'bar' } }), buildControlNode('c1')],
  [
    buildNode('w2', { labels: { pool: 'blue' } }),
    cordoned,
    buildNode('w1', { labels: { pool: 'blue' } }),
    buildNode('w10'),
  ],
);

describe('workers', () => {
  test.each<[string, TargetSpec | undefined, string[]]>([
    ['a plan without a target specification for workers selects no worker', undefined, []],
    ['neither list nor selector: none', { discovery: {} }, []],
    ['a list: in its order', listed('w2', 'w1'), ['w2', 'w1']],
    [
      'a list with names that nobody has: kept, so that they are found missing',
      listed('w9', 'w1'),
      ['w9', 'w1'],
    ],
    ['a list without names: none', { discovery: { static: {} } }, []],
    [
      'a list of nodes replaces a selector, even if the list is empty',
      { discovery: { static: { nodes: [] }, selector: { labels: 'pool=blue' } } },
      [],
    ],
    [
      'an empty selector selects all workers, sorted by name',
      selected(),
      ['w1', 'w10', 'w2', 'w3'],
    ],
    ['labels', selected('pool=blue'), ['w1', 'w2']],
    ['labels that nobody has: none', selected('pool=red'), []],
    ['the absence of a label', selected('!pool'), ['w10']],
    ['another value of a label, or none', selected('pool!=blue'), ['w10', 'w3']],
    [
      'a field selector can select a worker by metadata.name',
      selected(undefined, 'metadata.name=w2'),
      ['w2'],
    ],
    ['all but a name', selected('pool=blue', 'metadata.name!=w2'), ['w1']],
    [
      'the field selector spec.unschedulable=false selects only workers that are not cordoned',
      selected('', 'spec.unschedulable=false'),
      ['w1', 'w10', 'w2'],
    ],
    [
      'a node must match both the label selector and the field selector',
      selected('pool=green', 'metadata.name=w1'),
      [],
    ],
  ])('%s', (_name, spec, names) => {
    expect(discover(spec, 'worker', world)).toEqual(names);
  });
});

test('controllers are looked for among controllers', () => {
  expect(discover(selected(), 'controller', world)).toEqual(['c1', 'c2']);
  expect(discover(selected('foo=bar', 'metadata.name=c2'), 'controller', world)).toEqual(['c2']);
});

test('the order does not hang on the order in which the objects came', () => {
  const names = ['w3', 'w1', 'w2'].map((name) => buildNode(name));
  const found = [names, names.toReversed()].map((nodes) =>
    discover(selected(), 'worker', buildWorld([], nodes)),
  );
  expect(found[0]).toEqual(found[1]);
});

describe('a worker that is a controller too', () => {
  const both = buildWorld(
    [buildControlNode('n1'), buildControlNode('n2', { labels: { 'kubernetes.io/arch': 'arm64' } })],
    [buildNode('n1'), buildNode('n2'), buildNode('n3')],
  );
  test('is left to the controllers', () => {
    expect(withoutControllers(['n1', 'n3'], ['linux-amd64'], both)).toEqual(['n3']);
  });
  test('is left to the controllers also where its ControlNode has another name', () => {
    const annotations = { [MODE_ANNOTATION]: 'controller+worker' };
    const status = { addresses: [{ type: 'Hostname', address: 'host-1' }] };
    const controller = { ...buildControlNode('c1', { annotations }), status };
    const named = buildWorld([controller], [buildNode('host-1')]);
    expect(withoutControllers(['host-1', 'n3'], ['linux-amd64'], named)).toEqual(['n3']);
  });
  test('stays where the plan could not update it as a controller', () => {
    expect(withoutControllers(['n1', 'n2'], ['linux-amd64'], both)).toEqual(['n2']);
  });
});
