/** Shows what a preview says about the owner of Machines, whose update Cluster API wants to begin. */
import { expect, test } from 'vitest';
import { buildUpgradePolicy } from '../../../../test/support/builders/policies.ts';
import { NAMES, OWNER, OwnerScene } from '../../../../test/support/capi/owner-scene.ts';
import { machineDeployments, machines } from '../../../api/capi/machine.ts';
import type { UpgradePolicySpec } from '../../../api/refit/upgrade-policy.ts';
import { HOLD_ANNOTATION } from '../../../signal/holds.ts';
import type { MachineOwners } from '../plan/machine-owners.ts';
import { ownerLines, ownerPreviews } from './preview-owners.ts';

interface Given {
  readonly role?: 'worker' | 'controller';
  readonly policy?: UpgradePolicySpec;
  readonly owners?: Partial<MachineOwners>;
  readonly act?: (scene: OwnerScene) => void;
}

async function preview({ role = 'worker', policy, owners, act }: Given) {
  const scene = new OwnerScene(role);
  act?.(scene);
  scene.api.put(machineDeployments, {
    metadata: { name: OWNER.name, namespace: 'default' },
    spec: { rollout: { strategy: { rollingUpdate: { maxUnavailable: 2 } } } },
  });
  const previews = ownerPreviews({
    management: scene.api.client,
    workload: scene.api.client,
    owners: { ...scene.owners, ...owners },
    policies: policy ? [buildUpgradePolicy('nightly', policy)] : [],
    rulesOf: scene.rulesOf,
    clock: scene.clock,
  });
  const asked = NAMES.map((name) => ({
    machine: scene.api.read(machines, `m-${name}`),
    node: scene.node(name),
    version: 'v1.35.1',
    role,
  }));
  const groups = role === 'worker' ? [asked] : asked.map((each) => [each]);
  for (const each of groups)
    expect(await previews.note(each, new AbortController().signal)).toBeUndefined();
  return { previews, text: previews.all().flatMap(ownerLines).join('\n'), asked };
}

test('without a policy: how Cluster API marks Machines, and that each of them waits in its place', async () => {
  const { text, previews, asked } = await preview({});
  expect(text).toBe(
    [
      'MachineDeployment default/md, once Cluster API wants to update its Machines in place:',
      '  policy   no UpgradePolicy covers it',
      '  then     Cluster API does not ask again for a day, and marks Machines as maxUnavailable (2) allows. A marked Machine that must wait, waits in its place and uses up this room',
    ].join('\n'),
  );
  for (const { machine } of asked)
    expect(previews.of(machine)?.owner).toBe('MachineDeployment default/md');
});

test('the waves count the Machines of the owner, and name their approvals and pauses', async () => {
  const { text, previews } = await preview({
    policy: {
      plans: [{ dialect: 'capi', name: 'md' }],
      waves: [{ percent: 25, settle: '30m' }, { count: 2, approval: 'Manual' }, {}],
    },
  });
  expect(text).toContain('  policy   UpgradePolicy nightly\n');
  expect(text).toContain(
    '  waves    first 1 Machine, then 30 min later 2 Machines after an approval, then 1 Machine\n',
  );
  expect(previews.all()[0]?.waves).toEqual([
    { machines: 1, settleMs: 1_800_000 },
    { machines: 2, approval: true },
    { machines: 1 },
  ]);
});

test.each<[string, Given, RegExp | undefined]>([
  [
    'a policy that is paused',
    { policy: { paused: true } },
    /before +Refit makes Cluster API ask again later, and nothing is marked\. Now MachineDeployment md waits: .*paused/,
  ],
  [
    'a closed window',
    {
      policy: { windows: [{ days: ['Saturday'], start: '22:00', length: '1h', timeZone: 'UTC' }] },
    },
    /Now MachineDeployment md waits: .*window/,
  ],
  [
    'an open window',
    { policy: { windows: [{ start: '00:00', length: '24h', timeZone: 'UTC' }] } },
    /before +outside of the windows, Refit makes Cluster API ask again later, and nothing is marked/,
  ],
  ['another plan in the policy', { policy: { plans: [{ name: 'x' }], paused: true } }, undefined],
  [
    'a held Machine of a control plane',
    {
      role: 'controller',
      act: (scene) =>
        scene.annotate('w2', { [HOLD_ANNOTATION]: JSON.stringify({ reason: 'disk' }) }),
    },
    /Now MachineDeployment md waits: w2 is held: disk/,
  ],
])('what is awaited before anything is marked: %s', async (_what, given, said) => {
  const { text } = await preview(given);
  if (said === undefined) expect(text).not.toMatch(/before/);
  else expect(text).toMatch(said);
});

test('a control plane has no room, and its Machines are in no wave', async () => {
  const of = async () => await Promise.resolve({ ...OWNER, kind: 'KubeadmControlPlane' });
  const policy = { waves: [{ count: 1 }, {}] };
  const { text } = await preview({ role: 'controller', owners: { of }, policy });
  expect(text).toMatch(
    /^KubeadmControlPlane default\/md, .*\n.*\n {2}then +Cluster API asks before each Machine\./,
  );
});

test('a Machine without an owner has no such lines', async () => {
  const { text } = await preview({ owners: { of: async () => await Promise.resolve(undefined) } });
  expect(text).toBe('');
});

test('what cannot be read is unknown, and the preview goes on', async () => {
  const of = async () => await Promise.reject(new Error('you may not read MachineDeployments'));
  const { previews } = await preview({ owners: { of } });
  expect(previews.unseen()).toEqual([
    'what applies to the owner of m-w1: you may not read MachineDeployments',
  ]);
});
