/** Shows that the Cluster of a Machine is read from its Node, because a user of the workload cluster may read nothing else. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildViewParts } from '../../../test/support/builders/views.ts';
import { buildWorldOf } from '../../../test/support/builders/worlds-of-kinds.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import { NODE_ANNOTATIONS } from '../../api/capi/machine.ts';
import { capi } from '../../dialects/capi/plan/capi-dialect.ts';
import { withRequest } from '../../dialects/capi/plan/machine-update.ts';
import { type Node, nodes } from '../../kube/resources.ts';
import type { ShownStatus } from './json-form.ts';
import { observe } from './observe.ts';
import { render } from './render.ts';

const LOOK = { hasColours: false, size: () => ({ columns: 100, rows: 24 }) };

function machineNode(machine: string, cluster?: string): Node {
  const annotations = { ...(cluster !== undefined && { [NODE_ANNOTATIONS.cluster]: cluster }) };
  return withRequest(buildNode(`node-of-${machine}`, { annotations }), {
    uid: machine,
    machine: `fleet/${machine}`,
    version: 'v1.36.3',
    role: 'worker',
    requested: later(0),
    platform: 'linux-amd64',
    url: 'https://example.com/k0s',
  });
}

async function look(...plans: readonly Node[]): Promise<ShownStatus> {
  const loaded = { dialect: capi, plans: () => plans, world: buildWorldOf([nodes, plans]) };
  const leader = { state: 'held', holder: 'abc', since: later(0) } as const;
  return { leader, plans: await observe(loaded, buildViewParts(), T0) };
}

test('Machines come with the name of their Cluster, and those of one Cluster together', async () => {
  const view = await look(
    machineNode('a', 'zoo'),
    machineNode('c', 'park'),
    machineNode('b', 'zoo'),
    machineNode('d'),
  );
  expect(view.plans.map(({ name, cluster }) => [name, cluster])).toEqual([
    ['fleet/d', undefined],
    ['fleet/c', 'park'],
    ['fleet/a', 'zoo'],
    ['fleet/b', 'zoo'],
  ]);
  const titles = render(view, 'text', T0, LOOK).match(/^Machine .*? \(/gm);
  expect(titles).toEqual([
    'Machine fleet/d (',
    'Machine fleet/c of Cluster park (',
    'Machine fleet/a of Cluster zoo (',
    'Machine fleet/b of Cluster zoo (',
  ]);
  expect(render(view, 'yaml', T0, LOOK)).toContain('    name: fleet/c\n');
  expect(render(view, 'yaml', T0, LOOK)).toContain('    cluster: park\n');
});
