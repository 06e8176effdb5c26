/** Tests on a real API server that a node does not block the other nodes if its drain delegation cannot be read. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { plans } from '../../src/api/autopilot/plan.ts';
import { autopilot } from '../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import type { DrainDelegation } from '../../src/engine/contract/features.ts';
import { CONDITIONS_ANNOTATION } from '../../src/engine/model/written-conditions.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { TransportError } from '../../src/kube/status-error.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { systemClock } from '../../src/util/clock.ts';
import { runLabController } from '../faults/lab/lab-controller.ts';
import { installKinds, kubeconfigFor } from './control-plane.ts';
import { Puppets } from './puppets.ts';

const MUTE = 'unanswered-w1';

const stop = new AbortController();
let isMute = true;
let admin: KubeClient;
let client: KubeClient;
let running: Promise<void>;

const isDelegated: DrainDelegation['isDelegated'] = async (writer, stage, target, world, abort) => {
  if (isMute && target.name === MUTE)
    throw new TransportError('no answer', { maybeApplied: false });
  return (
    (await autopilot.drainDelegation?.isDelegated?.(writer, stage, target, world, abort)) === true
  );
};

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  client = createClient(await loadClusterConfig({ path: await kubeconfigFor('controller') }));
  const { drainDelegation } = autopilot;
  const dialect = {
    ...autopilot,
    ...(drainDelegation ? { drainDelegation: { ...drainDelegation, isDelegated } } : {}),
  };
  const identity = 'unanswered';
  const parts = {
    dialect,
    client,
    identity,
    clock: systemClock,
    random: Math.random,
    isReady: () => true,
  };
  running = runLabController(parts, stop.signal);
});

afterAll(async () => {
  stop.abort();
  await running;
  client.close();
  admin.close();
});

test('other nodes are drained and continue; this one waits with the reason and is drained once its delegation can be read', async () => {
  await using puppets = await Puppets.create(admin, MUTE, 'unanswered-w2');
  await puppets.plan(2);
  for (const name of puppets.names) await puppets.says(name, 'Cordoning');

  const statusOf = async (name: string): Promise<string | undefined> =>
    (await puppets.signal(name))?.status?.status;
  await puppets.until(async () => expect(await statusOf('unanswered-w2')).toBe('ApplyingUpdate'));
  await puppets.until(async () => {
    const { annotations = {} } = (await admin.get(plans, 'autopilot')).metadata;
    const told = `"reason":"CannotDecide","message":"could not check whether ${MUTE} delegates its drain: no answer"`;
    expect(annotations[CONDITIONS_ANNOTATION]).toContain(told);
  });
  expect([await statusOf(MUTE), await puppets.cordon(MUTE)]).toEqual(['Cordoning', 'none']);

  isMute = false;
  await puppets.until(async () => expect(await statusOf(MUTE)).toBe('ApplyingUpdate'));
  for (const name of puppets.names) await puppets.says(name, 'Completed');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
});
