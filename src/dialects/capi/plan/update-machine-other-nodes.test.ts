/** Proves that the answer for a Machine that waits for other Nodes reports this wait, on every replica. */
import { expect, test } from 'vitest';
import { buildUpgradePolicy } from '../../../../test/support/builders/policies.ts';
import { MachineScene } from '../../../../test/support/capi/machine-scene.ts';
import { upgradePolicies } from '../../../api/kinds.ts';
import { annotated, nodes, withoutAnnotations } from '../../../kube/resources.ts';
import { decodeSignal } from '../../../signal/annotations.ts';
import { RECORD_ANNOTATION, UPDATE_ANNOTATION } from './machine-update.ts';

async function signalled(scene: MachineScene, ...names: string[]): Promise<boolean[]> {
  for (const name of names) await scene.ask(name);
  for (const name of names) await scene.lead(name);
  return names.map((name) => decodeSignal(scene.node(name).metadata.annotations) !== undefined);
}

test('another controller is at work', async () => {
  const scene = new MachineScene(['c1', 'c2'], 'controller');
  expect(await signalled(scene, 'c1', 'c2')).toEqual([true, false]);
  const message = 'c1 is still at work for another plan';
  expect(await scene.ask('c2')).toMatchObject({ message, retryAfterSeconds: 20 });
});

test('a policy allows no other node to be unavailable', async () => {
  const scene = new MachineScene(['w1', 'w2']);
  scene.api.put(upgradePolicies, buildUpgradePolicy('calm', { maxUnavailable: 1 }));
  scene.policy = { ...scene.policy, maxUnavailable: { nodes: 1 } };
  expect(await signalled(scene, 'w1', 'w2')).toEqual([true, false]);
  const message = expect.stringContaining('at work (w1); UpgradePolicy calm allows 1') as string;
  expect(await scene.ask('w2')).toMatchObject({ message, retryAfterSeconds: 20 });
});

/** Returns a scene in which the first of two controllers is being upgraded. */
async function inMotion(): Promise<MachineScene> {
  const scene = new MachineScene(['c1', 'c2'], 'controller');
  await signalled(scene, 'c1');
  scene.report('c1', 'ApplyingUpdate');
  return scene;
}

test('another controller is at work, though its update was asked for again', async () => {
  const scene = await inMotion();
  scene.api.change(nodes, 'c1', (node) => withoutAnnotations(node, UPDATE_ANNOTATION));
  await scene.ask('c1');
  expect(await signalled(scene, 'c2')).toEqual([false]);
});

test('another controller is at work, though its deadline has passed', async () => {
  const scene = await inMotion();
  const failed = {
    phase: 'failed',
    state: 'failed',
    reason: { code: 'DeadlineExceeded', message: 'c1 is late' },
  };
  scene.api.change(nodes, 'c1', (node) => {
    const record = JSON.parse(node.metadata.annotations?.[RECORD_ANNOTATION] ?? '') as object;
    return annotated(node, { [RECORD_ANNOTATION]: JSON.stringify({ ...record, ...failed }) });
  });
  expect(await signalled(scene, 'c2')).toEqual([false]);
  scene.report('c1', 'Failed');
  await scene.lead('c2');
  expect(await signalled(scene, 'c2')).toEqual([true]);
});
