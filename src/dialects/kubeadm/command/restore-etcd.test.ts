/** Proves that a restore of etcd and an upgrade never change the same hosts at the same time. */
import { expect, test } from 'vitest';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import type { KubeClient } from '../../../kube/client.ts';
import type { Lease } from '../../../kube/resources.ts';
import { microTime } from '../../../util/clock.ts';
import { isWantedAndFree } from './restore-etcd.ts';

function scene() {
  const clock = new FakeClock();
  let lease: Lease | undefined;
  const get = async (): Promise<Lease> =>
    await (lease === undefined
      ? Promise.reject(new Error('there is no Lease'))
      : Promise.resolve(lease));
  return {
    session: {
      clock,
      client: { get } as unknown as KubeClient,
      abort: new AbortController().signal,
    },
    beginApply: () => {
      const now = microTime(clock.now());
      const spec = {
        holderIdentity: 'apply',
        leaseDurationSeconds: 15,
        acquireTime: now,
        renewTime: now,
      };
      lease = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: 'l' },
        spec,
      };
    },
  };
}

test('a restore of etcd is refused if an upgrade began while the user was asked', async () => {
  const { session, beginApply } = scene();
  const asked = isWantedAndFree(session, async () => {
    beginApply();
    return await Promise.resolve(true);
  });
  await expect(asked).rejects.toThrow(
    /^a run of refit kubeadm apply holds lease .*; let it end, or end it$/,
  );
});

test.each([true, false])(
  'a restore of etcd without an upgrade depends on the answer of the user: %s',
  async (answer) => {
    const { session } = scene();
    expect(await isWantedAndFree(session, async () => await Promise.resolve(answer))).toBe(answer);
  },
);
