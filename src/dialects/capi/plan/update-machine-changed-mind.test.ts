/**
 * Proves how an update ends if the Machine gets another version, or somebody pauses it, before the update has started.
 */
import { describe, expect, test } from 'vitest';
import { MachineScene } from '../../../../test/support/capi/machine-scene.ts';
import { later } from '../../../../test/support/clock/times.ts';
import { CONTROL_PLANE_LABEL, machines } from '../../../api/capi/machine.ts';
import { PAUSE_ANNOTATION } from '../../../engine/model/controls.ts';
import { annotated, nodes } from '../../../kube/resources.ts';
import { decodeSignal } from '../../../signal/annotations.ts';
import { updateOn } from './machine-update.ts';

const isSignalled = (scene: MachineScene, name: string): boolean =>
  decodeSignal(scene.node(name).metadata.annotations) !== undefined;

describe('another version before anything has begun', () => {
  async function waitingScene(): Promise<MachineScene> {
    const scene = new MachineScene(['w1']);
    scene.policy = { ...scene.policy, paused: true };
    await scene.ask('w1');
    await scene.lead('w1');
    return scene;
  }

  test('that which the node runs already: the request is withdrawn, and the update is done', async () => {
    const scene = await waitingScene();
    scene.want('w1', 'v1.35.0');
    expect((await scene.ask('w1', 'v1.35.0')).message).toBe(
      'the update to v1.35.1 is not in progress; its request is withdrawn',
    );
    expect(updateOn(scene.node('w1'))).toBeUndefined();
    expect(await scene.ask('w1', 'v1.35.0')).toMatchObject({
      status: 'Success',
      retryAfterSeconds: 0,
    });
    scene.policy = { ...scene.policy, paused: false };
    await scene.lead('w1');
    expect(isSignalled(scene, 'w1')).toBe(false);
  });

  test('a later one: only that is carried out', async () => {
    const scene = await waitingScene();
    scene.want('w1', 'v1.35.2');
    await scene.ask('w1', 'v1.35.2');
    await scene.ask('w1', 'v1.35.2');
    expect(updateOn(scene.node('w1'))?.version).toBe('v1.35.2');
  });

  test('once the leader means to start it, it is brought to its end', async () => {
    const scene = new MachineScene(['w1']);
    await scene.ask('w1');
    await scene.lead('w1');
    scene.want('w1', 'v1.35.2');
    expect((await scene.ask('w1', 'v1.35.2')).message).toMatch(
      /^waiting for the update to v1\.35\.1: /,
    );
  });
});

test('a pause holds until somebody ends it, also for the next version', async () => {
  const scene = new MachineScene(['w1']);
  await scene.ask('w1');
  await scene.lead('w1');
  scene.api.change(nodes, 'w1', (node) => annotated(node, { [PAUSE_ANNOTATION]: later(0) }));
  scene.report('w1', 'Completed');
  await scene.lead('w1');
  scene.kubelet('w1', 'v1.35.1');
  scene.want('w1', 'v1.35.2');
  await scene.ask('w1', 'v1.35.2');
  await scene.lead('w1');
  expect((await scene.ask('w1', 'v1.35.2')).message).toMatch(/^the plan is paused: /);
});

test('Nodes of the control plane go one after the other, also where their Machines lack the label', async () => {
  const scene = new MachineScene(['c1', 'c2'], 'controller');
  for (const name of ['c1', 'c2']) {
    scene.api.change(
      machines,
      `m-${name}`,
      ({ metadata: { labels = {}, ...metadata }, ...machine }) => {
        const { [CONTROL_PLANE_LABEL]: _gone, ...left } = labels;
        return { ...machine, metadata: { ...metadata, labels: left } };
      },
    );
    await scene.ask(name);
    await scene.lead(name);
  }
  expect(['c1', 'c2'].map((name) => isSignalled(scene, name))).toEqual([true, false]);
});

test('a version that breaks a rule is refused, whatever CanUpdateMachine was asked, unless a setting lifts the rule', async () => {
  const scene = new MachineScene(['w1']);
  scene.want('w1', 'v1.34.9');
  expect(await scene.ask('w1', 'v1.34.9')).toMatchObject({
    status: 'Failure',
    message: expect.stringMatching(
      /^w1 would go from v1\.35\.0 down to v1\.34\.9 \(rule Downgrade\); to allow it, add the name of the rule to the setting /,
    ) as unknown,
  });
  expect(updateOn(scene.node('w1'))).toBeUndefined();
  await scene.ask('w1', 'v1.34.9', { allowedVersionRules: 'Downgrade' });
  expect(updateOn(scene.node('w1'))?.version).toBe('v1.34.9');
});
