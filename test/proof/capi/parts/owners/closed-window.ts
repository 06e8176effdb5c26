/**
 * Tests owners whose maintenance window is closed. Cluster API marks none of their Machines, so no Machine uses up the room
 * of its owner while it waits.
 */
import { upgradePolicies } from '../../../../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../../../../src/api/refit/upgrade-policy.ts';
import { systemClock } from '../../../../../src/util/clock.ts';
import { CLUSTER, controlPlanes, NAMESPACE } from '../../machines/objects.ts';
import { IN_PROGRESS } from '../../machines/settled.ts';
import { CONTROL_PLANE_VERSIONS, type Scene } from '../../scene.ts';
import { wantControlPlane } from '../update.ts';
import { requested, usePolicy } from './policies.ts';

/** After more failed calls, the manager waits for minutes before it calls again. */
const FAILED_CALLS = 2;
const POLICY = 'night';
const DAY_MS = 86_400_000;
const DAYS = [
  'Sunday',
  'Monday',
  'Tuesday',
  'Wednesday',
  'Thursday',
  'Friday',
  'Saturday',
] as const;

/** Returns a window that opens in three days. A length of a week makes it open at all times. */
function windowOf(length: string): NonNullable<UpgradePolicySpec['windows']> {
  const day = DAYS[new Date(systemClock.now() + 3 * DAY_MS).getUTCDay()] ?? 'Sunday';
  return [{ days: [day], start: '00:00', length, timeZone: 'UTC' }];
}

/** Makes the manager call again now, and not after its back-off, which grows with each failed call. */
async function askAgain({ cluster }: Scene): Promise<void> {
  const metadata = { annotations: { 'proof.refit.dev/window': 'open' } };
  const options = { type: 'merge', namespace: NAMESPACE } as const;
  await cluster.client.patch(controlPlanes, CLUSTER, { metadata }, options);
}

export async function closedWindow(scene: Scene): Promise<void> {
  const { checks, cluster } = scene;
  const before = await scene.identities('control plane');
  const [machine] = await scene.machines('control plane');
  const current = machine?.spec.version ?? '';
  const version = CONTROL_PLANE_VERSIONS.at(-1) ?? '';
  await usePolicy(scene, POLICY, CLUSTER, { windows: windowOf('1h') });
  await checks.check(
    'a control plane whose window is closed: no Machine is marked, and none has a request',
    async () => {
      await wantControlPlane(scene, { version });
      await scene.failedCalls('control-plane', 'CanUpdateMachine', FAILED_CALLS);
      const marked = (await scene.machines('control plane')).filter(
        ({ metadata }) => metadata.annotations?.[IN_PROGRESS] !== undefined,
      );
      const asked = await requested(scene, before.keys(), version);
      return [
        ...marked.map(({ metadata: { name } }) => `${name} is marked`),
        ...asked.map((name) => `${name} has a request`),
        ...(await scene.wrongAfter('control plane', current, before)),
      ];
    },
  );
  await checks.check('the window is opened: all three Machines end in place', async () => {
    const spec = { windows: windowOf('168h') };
    await cluster.client.patch(upgradePolicies, POLICY, { spec }, { type: 'merge' });
    await askAgain(scene);
    await scene.settled('control plane', version);
    return await scene.wrongAfter('control plane', version, before);
  });
  await cluster.client.delete(upgradePolicies, POLICY);
}
