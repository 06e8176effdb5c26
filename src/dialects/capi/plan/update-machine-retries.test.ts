/** Proves what Cluster API is answered while a policy tries a failed update again, and which updates are left alone. */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { MachineScene } from '../../../../test/support/capi/machine-scene.ts';
import { MINUTE } from '../../../../test/support/clock/times.ts';
import { decodeSignal } from '../../../signal/annotations.ts';
import { updateOn } from './machine-update.ts';

const RETRY = buildPolicy({ name: 'again', retry: { attempts: 2, backoffMs: 5 * MINUTE } });

/** Lets the leader carry out everything that it can do now. */
async function leadOn(scene: MachineScene): Promise<void> {
  for (let turn = 0; turn < 6; turn++) await scene.lead('w1');
}

async function begun(): Promise<MachineScene> {
  const scene = new MachineScene(['w1']);
  scene.policy = RETRY;
  await scene.ask('w1');
  await leadOn(scene);
  return scene;
}

async function failedOnce(): Promise<MachineScene> {
  const scene = await begun();
  scene.report('w1', 'FailedDownload');
  await leadOn(scene);
  return scene;
}

const attemptOn = (scene: MachineScene): string | undefined =>
  decodeSignal(scene.node('w1').metadata.annotations)?.created;

test('a failed update waits for its next attempt, and Cluster API is told so and not that it failed', async () => {
  const scene = await failedOnce();
  const answer = await scene.ask('w1');
  expect(answer).toMatchObject({ status: 'Success', retryAfterSeconds: 20 });
  expect(answer.message).toMatch(/w1 failed: attempt 2 of 2 at /);
});

test('after the pause the same request is tried again, and the second failure ends the update', async () => {
  const scene = await failedOnce();
  const { uid } = updateOn(scene.node('w1')) ?? {};
  const first = attemptOn(scene);
  await scene.clock.advance(6 * MINUTE);
  await leadOn(scene);
  expect(updateOn(scene.node('w1'))?.uid).toBe(uid);
  expect(attemptOn(scene)).not.toBe(first);
  scene.report('w1', 'FailedDownload');
  await leadOn(scene);
  expect(await scene.ask('w1')).toMatchObject({ status: 'Failure' });
});

test('another version does not wait for the next attempt of the failed one', async () => {
  const scene = await failedOnce();
  scene.want('w1', 'v1.35.2');
  await scene.ask('w1', 'v1.35.2');
  await scene.ask('w1', 'v1.35.2');
  expect(updateOn(scene.node('w1'))?.version).toBe('v1.35.2');
});

test('an update that missed its deadline is not tried again, because its agent may be gone', async () => {
  const scene = await begun();
  await scene.clock.advance(RETRY.targetDeadlineMs + MINUTE);
  await leadOn(scene);
  expect(await scene.ask('w1')).toMatchObject({ status: 'Failure' });
});
