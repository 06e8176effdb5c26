/**
 * Tests the answers for a cluster with a single Machine, which is the whole control plane. Cluster API decides whether
 * it calls the hooks for such a cluster.
 */
import { expect, test } from 'vitest';
import { buildNode } from '../../../../../test/support/builders/nodes.ts';
import { leftBy, REFIT, Scene } from '../../../../../test/support/capi/can-update.ts';
import { MachineScene } from '../../../../../test/support/capi/machine-scene.ts';
import { buildTriple } from '../../../../../test/support/capi/triples.ts';
import { later } from '../../../../../test/support/clock/times.ts';
import type { Triple } from '../../../../api/capi/hooks.ts';
import { CONTROL_PLANE_LABEL, machines } from '../../../../api/capi/machine.ts';
import type { Updater } from '../../../../api/refit/updater-set.ts';
import { nodes } from '../../../../kube/resources.ts';
import { encodePresence } from '../../../../signal/agent-presence.ts';
import { decodeSignal } from '../../../../signal/annotations.ts';
import { AGENT_ANNOTATION } from '../../../../signal/names.ts';
import type { Json } from '../../../../util/json.ts';

const labels = { [CONTROL_PLANE_LABEL]: '' };
const CONFIGURATION: Updater = { name: 'configuration', nodeConfiguration: {} };

function sceneOfOneNode(): Scene {
  const scene = new Scene({}, [CONFIGURATION, REFIT]);
  scene.api.put(machines, {
    metadata: { name: 'm1', namespace: 'default', labels },
    status: { nodeRef: { name: 'n1' } },
  });
  const presence = encodePresence({ version: '1', since: later(0), configurable: ['user:alice'] });
  scene.api.put(nodes, {
    ...buildNode('n1', { annotations: { [AGENT_ANNOTATION]: presence } }),
    status: { nodeInfo: { kubeletVersion: 'v1.35.0' } },
  });
  return scene;
}

function tripleOf(version: string, key: string): Triple {
  const bootstrap: Json = { users: [{ name: 'alice', sshAuthorizedKeys: [key] }] };
  const { machine, ...rest } = buildTriple({ machine: { version }, bootstrap });
  return {
    ...rest,
    machine: { ...machine, metadata: { name: 'm1', ...machine?.metadata, labels } },
  };
}

test.each<[string, Triple, false | undefined]>([
  ['the version: covered, but the Machine is away meanwhile', tripleOf('v1.35.1', 'a'), undefined],
  [
    'Refit covers a changed SSH key on the only node, and the Machine stays available',
    tripleOf('v1.35.0', 'b'),
    false,
  ],
])('%s', async (_name, desired, affectsAvailability) => {
  const current = tripleOf('v1.35.0', 'a');
  const answer = await sceneOfOneNode().ask('CanUpdateMachine', current, desired);
  expect(leftBy(answer, current, desired), answer.message).toEqual([]);
  expect(answer.affectsAvailability).toBe(affectsAvailability);
});

test('if Cluster API asks, Refit updates the only node of a cluster and waits for no other node', async () => {
  const scene = new MachineScene(['c1'], 'controller');
  scene.health = [{ name: 'c1', ready: true }];
  await scene.ask('c1');
  await scene.lead('c1');
  expect(decodeSignal(scene.node('c1').metadata.annotations)?.command.version).toBe('v1.35.1');
  scene.report('c1', 'Completed');
  scene.kubelet('c1', 'v1.35.1');
  await scene.lead('c1');
  expect(await scene.ask('c1')).toMatchObject({ status: 'Success', retryAfterSeconds: 0 });
});
