/** Proves that the Machines of one owner are one plan: their waves, budgets, approvals and hooks count for the owner. */
import { describe, expect, test } from 'vitest';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { NAMES, OwnerScene } from '../../../../test/support/capi/owner-scene.ts';
import { MINUTE } from '../../../../test/support/clock/times.ts';
import { placeOf } from '../../../engine/contract/node-rollout-place.ts';
import { ownsNodeRollout } from '../../../engine/contract/plan-objects.ts';
import { PAUSE_ANNOTATION, RETRY_ANNOTATION } from '../../../engine/model/controls.ts';
import { decodeSignal } from '../../../signal/annotations.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { capi } from './capi-dialect.ts';
import { updateOn } from './machine-update.ts';

test('the Machines of an owner are one plan, which the Node of the first one represents', async () => {
  const scene = new OwnerScene();
  await scene.chosen('w2', 'w1');
  expect(scene.plans()).toEqual(['w2']);
  const [first, second] = ['w1', 'w2'].map((name) => updateOn(scene.node(name))?.owner?.rollout);
  expect(first).toBe(second);
  expect(scene.started()).toEqual(['w1', 'w2']);
});

test('a wave of one Machine: the next one waits until the first is done, and is told so', async () => {
  const scene = new OwnerScene();
  scene.policy = buildPolicy({ name: 'p', waves: [{ count: 1 }, {}] });
  await scene.chosen('w3', 'w1');
  expect(scene.started()).toEqual(['w3']);
  expect((await scene.ask('w1')).message).toMatch(/w1 comes after w3 in the waves/);
  await scene.finish('w3');
  expect(scene.started()).toEqual(['w1', 'w3']);
});

test('the settle time of a wave counts from the end of its Machines, which `percent` counts among all of the owner', async () => {
  const scene = new OwnerScene();
  scene.policy = buildPolicy({ name: 'p', waves: [{ percent: 50, settleMs: 30 * MINUTE }, {}] });
  await scene.chosen('w1', 'w2', 'w3');
  expect(scene.started()).toEqual(['w1', 'w2']);
  await scene.finish('w1');
  await scene.finish('w2');
  expect(scene.started()).toEqual(['w1', 'w2']);
  expect((await scene.ask('w3')).message).toMatch(/^wave 1 settles for 30 min before wave 2/);
  await scene.clock.advance(31 * MINUTE);
  await scene.settle();
  expect(scene.started()).toEqual(['w1', 'w2', 'w3']);
});

test('waves that select some Machines of an owner: none starts, and the message says what to do', async () => {
  const scene = new OwnerScene();
  const selector = { matchLabels: { canary: 'yes' } };
  scene.policy = buildPolicy({ name: 'p', waves: [{ selector }, {}] });
  scene.label('w2', { canary: 'yes' });
  await scene.chosen('w1');
  expect(scene.started()).toEqual([]);
  const { message } = await scene.ask('w1');
  expect(message).toMatch(/^wave 1 of UpgradePolicy p selects some of these nodes, but not all/);
  for (const name of NAMES) scene.label(name, { canary: 'yes' });
  await scene.settle();
  expect(scene.started()).toEqual(['w1']);
});

describe('a Machine that failed', () => {
  test('without a failure budget, it lets no other Machine of the owner start', async () => {
    const scene = new OwnerScene();
    scene.policy = buildPolicy({ name: 'p', waves: [{ count: 1 }, {}] });
    await scene.chosen('w1', 'w2');
    await scene.fail('w1');
    expect(await scene.ask('w1')).toMatchObject({ status: 'Failure' });
    const { status, message, retryAfterSeconds } = await scene.ask('w2');
    expect([status, retryAfterSeconds]).toEqual(['Success', 20]);
    expect(message).toMatch(/w1/);
    expect(scene.started()).toEqual(['w1']);
    expect(scene.stateOf('w2')).not.toBe('failed');
  });

  test('within the failure budget, the others go on, and the plan ends after them', async () => {
    const scene = new OwnerScene();
    scene.policy = buildPolicy({ name: 'p', maxFailures: 1 });
    await scene.chosen('w1', 'w2', 'w3', 'w4');
    await scene.fail('w1');
    for (const name of ['w2', 'w3', 'w4']) await scene.finish(name);
    expect(await scene.ask('w1')).toMatchObject({ status: 'Failure' });
    expect(await scene.ask('w4')).toMatchObject({ status: 'Success', retryAfterSeconds: 0 });
    // As in every dialect, the record of a plan that is over says that a node failed.
    expect(scene.phaseOf('w1')).toBe('failed');
  });

  test.each([
    ['represented the plan', 'w1', 'w2'],
    ['did not represent the plan', 'w2', 'w1'],
  ])(
    'that %s and is deleted still counts, until somebody retries it',
    async (_what, failing, other) => {
      const scene = new OwnerScene();
      scene.policy = buildPolicy({ name: 'p', waves: [{ count: 1 }, { count: 1 }, {}] });
      await scene.chosen('w1', 'w2', 'w3');
      if (failing === 'w2') await scene.finish('w1');
      await scene.fail(failing);
      const begun = scene.started();
      scene.delete(failing);
      await scene.settle();
      expect(scene.started()).toEqual(begun.filter((name) => name !== failing));
      expect((await scene.ask('w3')).message).toContain(failing);
      const [first = ''] = scene.plans();
      expect(first).toBe(other);
      const at = rfc3339(scene.clock.now() + 1_000);
      scene.control(first, { [RETRY_ANNOTATION]: `${failing}@${at}` });
      await scene.settle();
      expect(scene.started().length).toBeGreaterThan(begun.length - 1);
    },
  );

  test('keeps its own reason, also if another one failed before it', async () => {
    const scene = new OwnerScene();
    scene.policy = buildPolicy({ name: 'p', maxFailures: 3 });
    await scene.chosen('w1', 'w2');
    await scene.fail('w1');
    await scene.clock.advance(scene.policy.targetDeadlineMs + MINUTE);
    await scene.settle();
    expect((await scene.ask('w1')).message).toMatch(/^w1.*FailedDownload/);
    expect((await scene.ask('w2')).message).toMatch(/^w2.*did not/);
  });
});

describe('the Node that represents the plan is deleted', () => {
  test('another one represents it, and what was recorded stays', async () => {
    const scene = new OwnerScene();
    scene.policy = buildPolicy({ name: 'p', waves: [{ count: 2 }, {}] });
    await scene.chosen('w1', 'w2', 'w3');
    await scene.finish('w1');
    scene.delete('w1');
    await scene.settle();
    expect(scene.plans()).toEqual(['w2']);
    expect(scene.phaseOf('w2')).toBe('running');
    await scene.finish('w2');
    expect(scene.stateOf('w2')).toBe('done');
  });
});

describe('a later version', () => {
  test('begins another rollout, which the Machines that have the earlier version wait for', async () => {
    const scene = new OwnerScene();
    await scene.chosen(...NAMES);
    for (const name of NAMES) await scene.finish(name);
    expect(scene.phaseOf('w1')).toBe('done');
    const before = updateOn(scene.node('w1'))?.owner?.rollout;
    scene.want('w3', 'v1.35.2');
    await scene.ask('w3', 'v1.35.2');
    await scene.settle();
    expect(updateOn(scene.node('w3'))?.owner?.rollout).not.toBe(before);
    expect(scene.plans()).toEqual(['w3']);
    expect(scene.waiting('w3')).toEqual(['w1', 'w2', 'w4']);
  });

  test('while a Machine still gets the earlier version, both are plans, and the later one writes the history', async () => {
    const scene = new OwnerScene();
    await scene.chosen('w1', 'w2');
    await scene.finish('w1');
    scene.want('w1', 'v1.35.2');
    await scene.ask('w1', 'v1.35.2');
    await scene.settle();
    expect(scene.plans()).toEqual(['w2', 'w1']);
    const all = NAMES.map((name) => scene.node(name));
    const writing = ['w1', 'w2'].filter((name) =>
      ownsNodeRollout(capi, scene.node(name), buildWorld([], all)),
    );
    expect(writing).toEqual(['w1']);
    await scene.finish('w2');
    expect(scene.plans()).toEqual(['w1']);
    expect(scene.waiting('w1')).toEqual(['w2', 'w3', 'w4']);
  });

  test('a pause of the later plan also holds the Machines that still get the earlier version', async () => {
    const scene = new OwnerScene();
    scene.policy = buildPolicy({ name: 'p', waves: [{ count: 1 }, {}] });
    await scene.chosen('w1', 'w2');
    scene.want('w3', 'v1.35.2');
    await scene.ask('w3', 'v1.35.2');
    scene.annotate('w3', { [PAUSE_ANNOTATION]: 'true' });
    await scene.finish('w1');
    expect(scene.started()).toEqual(['w1']);
    expect((await scene.ask('w2')).message).toMatch(
      /a later plan of MachineDeployment md is paused/,
    );
  });

  test('two Machines that are chosen at once begin the same rollout', async () => {
    const scene = new OwnerScene();
    await Promise.all(['w1', 'w2'].map(async (name) => await scene.ask(name)));
    const rollouts = ['w1', 'w2'].map((name) => updateOn(scene.node(name))?.owner?.rollout);
    expect(new Set(rollouts).size).toBe(1);
    expect(rollouts[0]).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  });
});

test('a request of a replica with a slow clock does not take over the plan, and a pause stays', async () => {
  const scene = new OwnerScene();
  scene.policy = buildPolicy({ name: 'p', waves: [{ count: 1 }, {}] });
  await scene.chosen('w1', 'w2');
  scene.annotate('w1', { [PAUSE_ANNOTATION]: 'true' });
  scene.request('w2', { requested: '2020-01-01T00:00:00.000Z' });
  await scene.finish('w1');
  expect(scene.plans()).toEqual(['w1']);
  expect(scene.node('w1').metadata.annotations).toHaveProperty([PAUSE_ANNOTATION]);
  expect(scene.started()).toEqual(['w1']);
});

describe('a Machine keeps its place in the waves', () => {
  test('also if the clock of another replica gives a later request an earlier time', async () => {
    const scene = new OwnerScene();
    const wave = { needsApproval: true };
    scene.policy = buildPolicy({ name: 'p', waves: [{ count: 1 }, wave] });
    await scene.chosen('w1', 'w2', 'w3');
    scene.request('w3', { requested: '2020-01-01T00:00:00.000Z' });
    await scene.settle();
    expect(scene.started()).toEqual(['w1']);
    await scene.finish('w1');
    expect(scene.started()).toEqual(['w1']);
  });
});

test('a Node runs only what its own request names, although other releases may have written other requests', async () => {
  const scene = new OwnerScene();
  scene.policy = buildPolicy({ name: 'p', waves: [{ count: 1 }, {}] });
  await scene.chosen('w1', 'w2', 'w3');
  scene.request('w3', {
    url: 'https://evil.example.com/k0s',
    sha256: 'e'.repeat(64),
    role: 'worker',
  });
  scene.request('w1', { version: 'v9.9.9' });
  await scene.settle();
  scene.request('w1', { version: 'v1.35.1' });
  await scene.finish('w1');
  const { command } = decodeSignal(scene.node('w2').metadata.annotations) ?? {};
  expect(JSON.stringify(command)).not.toContain('evil');
  expect(command?.version).toBe('v1.35.1');
});

test('a controller whose request calls it a worker does not let others start beside it', async () => {
  const scene = new OwnerScene('controller');
  await scene.ask('w1');
  await scene.ask('w2');
  scene.request('w1', { role: 'worker' });
  await scene.settle();
  expect(scene.started()).toEqual(['w1']);
});

test('a control plane and a MachineDeployment of the same name have a NodeRollout each', async () => {
  const scene = new OwnerScene();
  await scene.chosen('w1');
  expect(placeOf(capi, scene.node('w1'))?.name).toBe('capi-md');
  const { of } = scene.owners;
  scene.owners = {
    ...scene.owners,
    of: async (...asked) => {
      const owner = await of(...asked);
      return owner && { ...owner, kind: 'KubeadmControlPlane', uid: 'kcp-uid' };
    },
  };
  await scene.chosen('w2');
  expect(placeOf(capi, scene.node('w2'))?.name).toBe('capi-kubeadmcontrolplane-md');
});

test('controllers of one owner go one at a time, whatever Cluster API chooses', async () => {
  const scene = new OwnerScene('controller');
  await scene.chosen('w1', 'w2');
  expect(scene.started()).toEqual(['w1']);
  await scene.finish('w1');
  expect(scene.started()).toEqual(['w1', 'w2']);
});

test('other drain rules: the Machine with them waits until those in progress are done', async () => {
  const scene = new OwnerScene();
  await scene.chosen('w1');
  scene.ruled('w2', { drainSeconds: 60 });
  await scene.chosen('w2');
  expect(scene.started()).toEqual(['w1']);
  expect((await scene.ask('w2')).message).toMatch(/other MachineDrainRules apply to w1/);
  await scene.finish('w1');
  expect(scene.started()).toEqual(['w1', 'w2']);
});
