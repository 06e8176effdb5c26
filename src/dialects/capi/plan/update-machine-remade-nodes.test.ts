/** Shows the advice for a Node that was deleted and made again under the name that its Machine still names. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { type Machine, NODE_ANNOTATIONS } from '../../../api/capi/machine.ts';
import { findNode, type UpdateParts } from './update-machine.ts';

const { cluster, namespace, machine: owner } = NODE_ANNOTATIONS;

async function adviceFor(providerID: string, uid: string): Promise<unknown> {
  const annotations = { [cluster]: 'prod', [namespace]: 'default', [owner]: 'm1' };
  const node = { ...buildNode('w1', { annotations }), spec: { providerID: 'x://1' } };
  const machine = {
    metadata: { name: 'm1', namespace: 'default' },
    spec: { clusterName: 'prod', providerID },
    status: { nodeRef: { name: 'w1', uid } },
  } as Machine;
  const workload = { get: async () => await Promise.resolve(node) };
  const parts = { workload, abort: AbortSignal.abort() } as unknown as UpdateParts;
  return await findNode(parts, 'Machine default/m1', machine);
}

test('a Node with another uid than its Machine names was made again, and the kubeconfig is not blamed', async () => {
  expect(await adviceFor('x://1', 'earlier-uid')).toBe(
    'Machine default/m1 and node w1 do not belong together: status.nodeRef.uid is earlier-uid, metadata.uid of the Node is w1-uid; the Node was deleted and made again, so wait until Cluster API has updated status.nodeRef of the Machine',
  );
});

test('a Node that differs in more than its uid may be in another cluster, and the kubeconfig is named', async () => {
  expect(await adviceFor('x://2', 'earlier-uid')).toMatch(
    /check that --kubeconfig is for the cluster of this Machine$/,
  );
  expect(await adviceFor('x://1', 'w1-uid')).toMatchObject({ role: 'worker' });
});
