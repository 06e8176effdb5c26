/** Tests that the doubles' leases and ControlNodes look like those of real k0s. */
import { expect, test } from 'vitest';
import { type KubeObject, type Lease, leases } from '../../../src/kube/resources.ts';
import { CENTRAL_CORDONING_LABEL, controlNodes } from '../../../src/signal/names.ts';
import { LEADER_LEASE } from '../../support/doubles/runtime/lease-election.ts';
import { type Stage, startStage } from '../../support/doubles/stage.ts';
import { recordedObject } from '../../support/recordings.ts';

async function leaderLease(stage: Stage): Promise<Lease> {
  return await stage.client.get(leases, LEADER_LEASE.name, { namespace: LEADER_LEASE.namespace });
}

/** Replaces each text that differs between two clusters by a text for its kind, such as `a time`. */
function shapeOf({ metadata, ...rest }: KubeObject): unknown {
  const { name, labels, annotations } = metadata;
  const text = JSON.stringify({ ...rest, metadata: { name, labels, annotations } });
  return JSON.parse(
    text
      .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z/g, 'a time')
      .replaceAll(/"[0-9a-f]{32}"/g, '"an identity"')
      .replaceAll(/"(?:\d+\.){3}\d+"/g, '"an address"'),
  );
}

test('a held lease, a released one, and the one of its next holder', async () => {
  await using stage = await startStage({ controllers: ['c3', 'c1'] });
  const held = await leaderLease(stage);
  expect(shapeOf({ ...held, spec: { ...held.spec, leaseTransitions: 1 } } as Lease)).toEqual(
    shapeOf(recordedObject('lease-held')),
  );
  // The first write of the next holder waits until the test has read the released Lease. Otherwise that write could
  // replace the released Lease before the test reads it.
  let released: Lease | undefined;
  stage.recorder.hold = async ({ via, resource, name }) => {
    if (via !== 'c1' || resource !== 'leases' || name !== LEADER_LEASE.name) return;
    released ??= await leaderLease(stage);
  };
  stage.double('c3').terminate();
  await stage.until(() => expect(stage.double('c1').leads).toBe(true));
  expect(shapeOf(released ?? held)).toEqual(
    shapeOf(recordedObject('lease-just-after-graceful-release')),
  );
  expect(released?.metadata.labels?.[CENTRAL_CORDONING_LABEL]).toBe(held.spec?.holderIdentity);
  const next = await leaderLease(stage);
  expect(next.spec?.leaseTransitions).toBe((held.spec?.leaseTransitions ?? 0) + 1);
  expect(next.metadata.labels?.[CENTRAL_CORDONING_LABEL]).toBe(next.spec?.holderIdentity);
});

test('a worker marks its own lease', async () => {
  await using stage = await startStage({ controllers: ['c3'], workers: ['w1'] });
  const lease = await stage.client.get(leases, 'w1', { namespace: 'kube-node-lease' });
  const recorded: Lease = recordedObject('node-lease-worker');
  expect(lease.metadata.labels).toEqual(recorded.metadata.labels);
});

test('the ControlNode of a controller', async () => {
  await using stage = await startStage({ controllers: ['c1'] });
  const { metadata, ...recorded } = recordedObject('controlnode');
  // The recorded ControlNode also has a signal, which is left out here.
  const mode = Object.entries(metadata.annotations ?? {}).filter(([key]) => key.endsWith('/mode'));
  const expected = {
    ...recorded,
    metadata: { ...metadata, annotations: Object.fromEntries(mode) },
  };
  expect(shapeOf(await stage.client.get(controlNodes, 'c1'))).toEqual(shapeOf(expected));
});
