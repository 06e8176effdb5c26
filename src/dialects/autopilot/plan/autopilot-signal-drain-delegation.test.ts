/** Proves for which state of its Lease a target leaves cordon and drain to the leader. */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../../../test/support/builders/memory-api.ts';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildStage } from '../../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../../test/support/builders/targets.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import type { Role } from '../../../engine/model/rollout.ts';
import { leases } from '../../../kube/resources.ts';
import { CENTRAL_CORDONING_LABEL, MODE_ANNOTATION } from '../../../signal/names.ts';
import { drainDelegation as delegation } from './autopilot-signal.ts';

const bare = buildControlNode('c1', { annotations: { [MODE_ANNOTATION]: 'controller+worker' } });
const named = { ...bare, status: { addresses: [{ type: 'Hostname', address: 'host-1' }] } };
const world = buildWorld([named], [buildNode('host-1'), buildNode('w1')]);

test.each<[string, Role, string, Record<string, string>, boolean]>([
  ['a worker says so on its own', 'worker', 'w1', { w1: '' }, true],
  ['one without the label does not', 'worker', 'w1', {}, false],
  [
    'a controller says so on that of its Node, whatever that is called',
    'controller',
    'c1',
    { 'host-1': '' },
    true,
  ],
  ['and not on one of its own name', 'controller', 'c1', { c1: '' }, false],
])('%s', async (_name, role, name, marks, drainDelegations) => {
  const api = new MemoryApi();
  for (const lease of ['w1', 'c1', 'host-1']) {
    const mark = marks[lease];
    const labels = mark === undefined ? {} : { [CENTRAL_CORDONING_LABEL]: mark };
    api.put(leases, { metadata: { name: lease, labels } });
  }
  const stage = buildStage(role, [name]);
  expect(
    await delegation.isDelegated?.(api.client, stage, buildTarget(name, 'intended'), world),
  ).toBe(drainDelegations);
});
