/** Proves what the plan of an owner does for wishes that operators of Cluster API reported in public. */
import { describe, expect, test } from 'vitest';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { OwnerScene } from '../../../../test/support/capi/owner-scene.ts';
import { HOUR, MINUTE } from '../../../../test/support/clock/times.ts';
import { nodes } from '../../../kube/resources.ts';

const CANARIES = { matchLabels: { pool: 'canary' } };

function isDead(scene: OwnerScene, name: string): void {
  scene.api.change(nodes, name, (node) => ({
    ...node,
    status: { ...node.status, conditions: [{ type: 'Ready', status: 'Unknown' as const }] },
  }));
}

describe('the canaries have a MachineDeployment of their own', () => {
  test('the other MachineDeployment waits for an approval, but not for the settle time of the canaries', async () => {
    const scene = new OwnerScene();
    const waves = [{ selector: CANARIES, settleMs: HOUR }, {}];
    scene.policy = buildPolicy({ name: 'p', waves });
    await scene.chosen('w1');
    expect(scene.started()).toEqual(['w1']);

    const approved = new OwnerScene();
    const approval = [{ selector: CANARIES, settleMs: HOUR }, { needsApproval: true }];
    approved.policy = buildPolicy({ name: 'p', waves: approval });
    await approved.chosen('w1');
    expect(approved.started()).toEqual([]);
    expect((await approved.ask('w1')).message).toMatch(/wave 2 needs approval/);
  });
});

describe('the Machines of a control plane', () => {
  test('the settle time of the policy passes between two of them, in which the first one is not done yet', async () => {
    const scene = new OwnerScene('controller');
    scene.policy = buildPolicy({ name: 'p', settleMs: 10 * MINUTE });
    await scene.chosen('w1');
    await scene.finish('w1');
    await scene.chosen('w2');
    expect(scene.started()).toEqual(['w1']);
    expect((await scene.ask('w1')).message).toMatch(/^w1 keeps its slot for 10 min/);
    await scene.clock.advance(11 * MINUTE);
    await scene.settle();
    expect(scene.stateOf('w1')).toBe('done');
    expect(scene.started()).toEqual(['w1', 'w2']);
  });

  test('are in no wave, so a wave with an approval holds none of them', async () => {
    const scene = new OwnerScene('controller');
    const waves = [{ count: 1, settleMs: 10 * MINUTE }, { needsApproval: true }];
    scene.policy = buildPolicy({ name: 'p', waves });
    await scene.chosen('w1');
    await scene.finish('w1');
    await scene.chosen('w2');
    expect(scene.started()).toEqual(['w1', 'w2']);
  });
});

test('the window closes in the middle of a MachineDeployment: what has begun ends, nothing is marked, and the next window continues', async () => {
  const scene = new OwnerScene();
  const now = scene.clock.now();
  await scene.chosen('w1');
  const blackouts = [{ from: now - MINUTE, to: now + 12 * HOUR }];
  scene.policy = buildPolicy({ name: 'nightly', blackouts });
  expect(await scene.waitBefore(['w2'])).toMatch(/^MachineDeployment md waits: .*blackout/);
  await scene.finish('w1');
  expect(await scene.ask('w1')).toMatchObject({ status: 'Success', retryAfterSeconds: 0 });
  // Cluster API may have marked this Machine before the window closed.
  await scene.chosen('w2');
  expect(scene.started()).toEqual(['w1']);
  expect(await scene.ask('w2')).toMatchObject({ status: 'Success', retryAfterSeconds: 20 });
  await scene.clock.advance(13 * HOUR);
  await scene.settle();
  expect(scene.started()).toEqual(['w1', 'w2']);
});

test('a wave of one waits for an unhealthy Machine that was chosen first, and after it was deleted, the next one starts alone', async () => {
  const scene = new OwnerScene();
  scene.policy = buildPolicy({ name: 'p', waves: [{ count: 1 }, {}] });
  isDead(scene, 'w1');
  await scene.chosen('w1', 'w2', 'w3');
  expect(scene.started()).toEqual([]);
  expect((await scene.ask('w1')).message).toBe('node w1 is not Ready');
  expect((await scene.ask('w2')).message).toMatch(/^w2 comes after w1/);
  scene.delete('w1');
  await scene.settle();
  expect([scene.stateOf('w2'), scene.stateOf('w3')]).toEqual(['intended', undefined]);
  expect((await scene.ask('w3')).message).toMatch(/^w3 comes after w2/);
});

describe('the Machines of one MachineDeployment are in two racks', () => {
  function racked(): OwnerScene {
    const scene = new OwnerScene();
    for (const name of ['w1', 'w2']) scene.label(name, { rack: 'a' });
    for (const name of ['w3', 'w4']) scene.label(name, { rack: 'b' });
    return scene;
  }

  test('one wave for each rack is refused before anything is marked', async () => {
    const scene = racked();
    const waves = ['a', 'b'].map((rack) => ({ selector: { matchLabels: { rack } } }));
    scene.policy = buildPolicy({ name: 'p', waves });
    expect(await scene.waitBefore(['w1'])).toMatch(/^MachineDeployment md waits: wave 1 .*some/);
  });

  test('a limit for each rack lets one Machine of each rack start, whichever Cluster API chooses', async () => {
    const scene = racked();
    scene.policy = buildPolicy({ name: 'p', perDomain: { label: 'rack', limit: { nodes: 1 } } });
    await scene.chosen('w1', 'w2', 'w3');
    expect(scene.started()).toEqual(['w1', 'w3']);
    expect((await scene.ask('w2')).message).toMatch(/rack=a/);
  });
});
