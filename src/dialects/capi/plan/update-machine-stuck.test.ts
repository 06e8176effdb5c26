/**
 * Tests updates of Machines that make no progress: the agent disappears, a deadline passes, or the Machine is deleted.
 */
import { describe, expect, test } from 'vitest';
import { failed, withoutRequest } from '../../../../test/support/capi/machine-answers.ts';
import { MachineScene } from '../../../../test/support/capi/machine-scene.ts';
import type { UpdateMachineResponse } from '../../../api/capi/hooks.ts';
import { machines } from '../../../api/capi/machine.ts';
import { policyWithin } from '../../../engine/policy/rollout-policy.ts';
import { annotated, nodes } from '../../../kube/resources.ts';
import { decodeSignal } from '../../../signal/annotations.ts';
import { RECORD_ANNOTATION, updateOn } from './machine-update.ts';

describe('an agent that has vanished after the signal', () => {
  async function after(deadlineMs: number, waitMs: number): Promise<UpdateMachineResponse> {
    const scene = new MachineScene(['w1']);
    scene.policy = policyWithin(deadlineMs);
    await scene.ask('w1');
    for (let round = 0; round < 3; round++) {
      await scene.lead('w1');
      await scene.clock.advance(waitMs);
    }
    await scene.lead('w1');
    return await scene.ask('w1');
  }

  test('while somebody holds it up no time counts, and afterwards it begins anew', async () => {
    const scene = new MachineScene(['w1']);
    await scene.ask('w1');
    await scene.lead('w1');
    const policy = policyWithin(3_600_000);
    for (const more of [{ heldBy: 'Cluster default/prod' }, {}]) {
      for (let round = 0; round < 3; round++) {
        scene.policy = { ...policy, ...more };
        await scene.lead('w1');
        await scene.clock.advance('heldBy' in more ? 3_600_000 : 60_000);
      }
    }
    await scene.lead('w1');
    expect(await scene.ask('w1')).toMatchObject({ status: 'Success' });
    await scene.clock.advance(3_600_000);
    await scene.lead('w1');
    expect(await scene.ask('w1')).toMatchObject({ status: 'Failure' });
  });

  test('with a deadline the update fails', async () => {
    const late = failed('w1 did not report within its deadline');
    expect(await after(7 * 24 * 3_600_000, 3_600_000)).toMatchObject(late);
  });

  test('without one it waits for ever', async () => {
    const answer = await after(Number.POSITIVE_INFINITY, 365 * 24 * 3_600_000);
    expect(answer).toMatchObject({ status: 'Success', retryAfterSeconds: 2 });
  });
});

describe('an update that failed at its deadline, where stuck Machines are deleted after half an hour', () => {
  const late = 'w1 did not report within its deadline';
  const announced = failed(
    `${late}; its Machine is deleted once the node has reported nothing new for 30 min`,
  );

  async function stuckScene(kind = 'MachineSet', code = 'DeadlineExceeded'): Promise<MachineScene> {
    const scene = new MachineScene(['w1']);
    const owner = {
      apiVersion: 'cluster.x-k8s.io/v1beta2',
      kind,
      name: 'owner',
      uid: 'o1',
      controller: true,
    };
    scene.api.change(machines, 'm-w1', (machine) => ({
      ...machine,
      metadata: { ...machine.metadata, ownerReferences: [owner] },
    }));
    await scene.ask('w1');
    await scene.lead('w1');
    endLate(scene, code);
    return scene;
  }

  /** Records that the update failed, as a leader that watched the whole update does. */
  function endLate(scene: MachineScene, code = 'DeadlineExceeded'): void {
    scene.api.change(nodes, 'w1', (node) => {
      const since = new Date(scene.clock.now()).toISOString();
      const record = {
        uid: updateOn(node)?.uid,
        phase: 'failed',
        blocked: true,
        state: 'failed',
        since,
      };
      return annotated(node, {
        [RECORD_ANNOTATION]: JSON.stringify({ ...record, reason: { code, message: late } }),
      });
    });
  }

  function isThere(scene: MachineScene): boolean {
    return scene.api.calls.every((call) => !call.startsWith('delete'));
  }

  test('it is deleted when this process has seen nothing new for that long, and not before', async () => {
    const scene = await stuckScene();
    // Only the time for which this process has waited counts, because the clock of the leader may have been wrong when
    // it wrote the record.
    for (const minutes of [0, 15, 14.9]) {
      await scene.clock.advance(minutes * 60_000);
      expect(await scene.ask('w1')).toMatchObject(announced);
    }
    expect(isThere(scene)).toBe(true);
    await scene.clock.advance(60_000);
    expect(await scene.ask('w1')).toMatchObject(failed(`${late}; its Machine was deleted`));
    expect(scene.api.calls.at(-1)).toBe('delete machines/m-w1');
  });

  test('so is one that was not uncordoned within its deadline', async () => {
    const scene = await stuckScene('MachineSet', 'UncordonTooLong');
    expect(await scene.ask('w1')).toMatchObject(announced);
    await scene.clock.advance(30 * 60_000);
    expect(await scene.ask('w1')).toMatchObject(failed(`${late}; its Machine was deleted`));
  });

  test('so is one whose leader has ended its signal', async () => {
    const scene = await stuckScene();
    await scene.lead('w1');
    expect(decodeSignal(scene.node('w1').metadata.annotations)?.status?.status).toBe('Failed');
    expect(await scene.ask('w1')).toMatchObject(announced);
    await scene.clock.advance(30 * 60_000);
    expect(await scene.ask('w1')).toMatchObject(failed(`${late}; its Machine was deleted`));
  });

  test('the time begins anew with each report of the node, and with a new attempt', async () => {
    const scene = await stuckScene();
    await scene.ask('w1');
    await scene.clock.advance(29 * 60_000);
    scene.report('w1', 'Downloading');
    expect(await scene.ask('w1')).toMatchObject(announced);
    await scene.clock.advance(29 * 60_000);
    scene.api.change(nodes, 'w1', withoutRequest);
    await scene.lead('w1');
    await scene.ask('w1');
    await scene.lead('w1');
    endLate(scene);
    expect(await scene.ask('w1')).toMatchObject(announced);
    await scene.clock.advance(29 * 60_000);
    await scene.ask('w1');
    expect(isThere(scene)).toBe(true);
  });

  test.each([
    ['whose node reported its end', (scene: MachineScene) => scene.report('w1', 'Completed')],
    ['whose node reported its failure', (scene: MachineScene) => scene.report('w1', 'Failed')],
    ['whose kubelet reports the version', (scene: MachineScene) => scene.kubelet('w1', 'v1.35.1')],
  ])('one %s after all is not deleted', async (_what, happens) => {
    const scene = await stuckScene();
    happens(scene);
    for (const ms of [0, 60 * 60_000]) {
      await scene.clock.advance(ms);
      expect(await scene.ask('w1')).toMatchObject(failed(late));
    }
    expect(isThere(scene)).toBe(true);
  });

  test.each([
    ['that no MachineSet would replace', 'KubeadmControlPlane', 'DeadlineExceeded'],
    ['that failed for another reason', 'MachineSet', 'DrainTooLong'],
  ])('one %s is not deleted', async (_what, kind, code) => {
    const scene = await stuckScene(kind, code);
    for (const ms of [0, 60 * 60_000]) {
      await scene.clock.advance(ms);
      expect(await scene.ask('w1')).toMatchObject(failed(late));
    }
    expect(isThere(scene)).toBe(true);
  });

  test('one that somebody changes meanwhile is not deleted', async () => {
    const scene = await stuckScene();
    await scene.ask('w1');
    await scene.clock.advance(60 * 60_000);
    scene.api.before('delete', () => scene.want('w1', 'v1.35.2'));
    await expect(scene.ask('w1')).rejects.toThrow('Conflict');
    expect(scene.api.read(machines, 'm-w1').spec?.version).toBe('v1.35.2');
  });
});
