/**
 * Tests a release whose service answers, but whose kubelet never starts. One node is rolled back, and no other node is
 * changed.
 */

import { expect, test } from 'vitest';
import { nodes } from '../../../src/kube/resources.ts';
import { kubernetesPartOf } from '../../../src/versions/release-parts.ts';
import { listed } from '../../support/builders/plans.ts';
import { FROM, type Scene, TO, targetsIn, uniquePrefix, useScene } from './scene.ts';

const prefix = uniquePrefix();
const first = `${prefix}worker1`;
const second = `${prefix}worker2`;
const scene = useScene(
  { leader: 'refit', agents: 'refit' },
  {
    controllers: 0,
    workers: 2,
    prefix,
    played: true,
    mute: TO,
    agentFlags: ['--soak', '0', '--ready-timeout', '3s'],
  },
);

test('a node without kubelet heartbeats is rolled back, the plan fails, and no other node changes', async () => {
  const at = scene();
  // Heartbeats have a resolution of one second. So a heartbeat in the same second as the restart could count as a
  // heartbeat after the restart.
  await at.until(async () => expect(Date.now() - (await lastHeard(at))).toBeGreaterThan(2_000));
  const platforms = { 'linux-amd64': { url: at.url(TO) } };
  await at.create('silent', {
    k0supdate: { version: TO, platforms, targets: { workers: listed(first, second) } },
  });
  const plan = await at.ends('ApplyFailed');
  expect(targetsIn(plan)).toEqual([`${first} SignalApplyFailed`, `${second} SignalPending`]);
  expect(plan.status?.commands[0]?.description).toContain('no kubelet heartbeat within');
  expect(at.statusesOf(first, 'silent')).not.toContain('UnCordoning');
  expect(at.statusesOf(second, 'silent')).toEqual([]);
  expect(await at.host(first).version()).toBe(FROM);
  expect(at.host(second).starts).toBe(1);
  await at.until(async () => {
    const { spec, status } = await at.client.get(nodes, first);
    expect(spec?.unschedulable).toBeUndefined();
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'Ready', status: 'True' }),
    );
    expect(status?.nodeInfo?.kubeletVersion).toBe(kubernetesPartOf(FROM));
  });
});

/**
 * Returns the last heartbeat of the first node's kubelet, in milliseconds since the Unix epoch; NaN before the first
 * heartbeat.
 */
async function lastHeard({ client }: Scene): Promise<number> {
  const { status } = await client.get(nodes, first);
  return Date.parse(
    status?.conditions?.find(({ type }) => type === 'Ready')?.lastHeartbeatTime ?? '',
  );
}
