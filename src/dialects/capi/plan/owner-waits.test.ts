/** Proves for which waits of an owner Cluster API marks no Machine, and for which a Machine waits after it was marked. */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { NAMES, OwnerScene } from '../../../../test/support/capi/owner-scene.ts';
import { MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import { PAUSE_ANNOTATION } from '../../../engine/model/controls.ts';
import type { RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { HOLD_ANNOTATION } from '../../../signal/holds.ts';
import { rfc3339 } from '../../../util/clock.ts';

const CLOSED: Partial<RolloutPolicy> = {
  name: 'nightly',
  blackouts: [{ from: T0 - MINUTE, to: T0 + 60 * MINUTE }],
};

test.each<[string, Partial<RolloutPolicy>, RegExp | undefined]>([
  ['nothing', {}, undefined],
  ['a blackout', CLOSED, /^MachineDeployment md waits: .*blackout/i],
  ['a policy that is paused', { name: 'p', paused: true }, /waits: .*paused/],
  [
    'waves that split the Machines of the owner',
    { name: 'p', waves: [{ selector: { matchLabels: { canary: 'yes' } } }, {}] },
    /waits: wave 1 of UpgradePolicy p selects some/,
  ],
  [
    'the approval of the first wave, which needs a plan',
    { name: 'p', waves: [{ needsApproval: true }] },
    undefined,
  ],
])('before any Machine is marked, its owner waits for %s', async (_what, policy, wait) => {
  const scene = new OwnerScene();
  scene.label('w2', { canary: 'yes' });
  scene.policy = buildPolicy(policy);
  const found = await scene.waitBefore(NAMES);
  if (wait === undefined) expect(found).toBeUndefined();
  else expect(found).toMatch(wait);
});

test('a Machine that is alone in its plan is asked about at no time, because nothing but it waits', async () => {
  const scene = new OwnerScene();
  scene.owners = { ...scene.owners, of: async () => await Promise.resolve(undefined) };
  scene.policy = buildPolicy(CLOSED);
  expect(await scene.waitBefore(NAMES)).toBeUndefined();
});

test('the failure budget is used up: the next Machine of the control plane is not marked', async () => {
  const scene = new OwnerScene('controller');
  await scene.chosen('w1');
  expect(await scene.waitBefore(['w2'])).toBeUndefined();
  await scene.fail('w1');
  expect(await scene.waitBefore(['w2'])).toMatch(/^MachineDeployment md waits: .*w1/);
  // Another version begins anew.
  expect(await scene.waitBefore(['w2'], 'v1.35.2')).toBeUndefined();
});

test('a pause of the plan stays for its next Machines, and for the next version', async () => {
  const scene = new OwnerScene();
  await scene.chosen('w1');
  await scene.finish('w1');
  scene.annotate('w1', { [PAUSE_ANNOTATION]: rfc3339(scene.clock.now()) });
  expect(await scene.waitBefore(['w2'])).toMatch(/waits: .*paused/);
  expect(await scene.waitBefore(['w2'], 'v1.35.2')).toMatch(/waits: .*paused/);
});

test('a held Machine makes a MachineSet wait only if all its Machines are held', async () => {
  const scene = new OwnerScene();
  const hold = { [HOLD_ANNOTATION]: JSON.stringify({ reason: 'disk', since: rfc3339(T0) }) };
  scene.annotate('w1', hold);
  expect(await scene.waitBefore(['w1', 'w2'])).toBeUndefined();
  expect(await scene.waitBefore(['w1'])).toMatch(/waits: .*w1/);
});
