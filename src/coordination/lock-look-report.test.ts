/** Tests what commands such as `refit status` report about locks. These commands read each lock once and change nothing. */
import { expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../test/support/builders/memory-api.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { later, MINUTE, T0 } from '../../test/support/clock/times.ts';
import { daemonSets, type KubeObject, type Lease, leases } from '../kube/resources.ts';
import { microTime } from '../util/clock.ts';
import { lockHolder } from './lock-holder.ts';
import { lookAtLocks } from './lock-look.ts';
import type { ToolName } from './tool.ts';

const OURS = lockHolder(['autopilot', 'capi'], { namespace: 'kube-node-lease', name: 'refit' });
const NEVER = new AbortController().signal;

function leaseOf(holderIdentity: string, more: Lease['spec'] = {}): Lease {
  const times = { acquireTime: microTime(T0), renewTime: microTime(T0) };
  return {
    metadata: { namespace: 'refit-system', name: 'disruption', uid: 'lease-uid' },
    spec: { holderIdentity, leaseDurationSeconds: 60, ...times, ...more },
  };
}

function kuredWith(lock: object): KubeObject {
  const annotations = { 'weave.works/kured-node-lock': JSON.stringify(lock) };
  return { metadata: { namespace: 'kube-system', name: 'kured', annotations } };
}

async function look(api: MemoryApi, coordinate: readonly ToolName[], dialect = 'autopilot') {
  const parts = { client: api.client, clock: new FakeClock(T0) };
  return await lookAtLocks(parts, dialect, coordinate, NEVER);
}

test.each<[string, Lease | undefined, boolean, string[]]>([
  ['that does not exist is free', undefined, false, []],
  ['of an installation that carries out plans of this dialect is its own', leaseOf(OURS), true, []],
  [
    'of an installation with other dialects belongs to somebody else',
    leaseOf('refit/kubeadm'),
    false,
    ['Lease refit-system/disruption is held by refit/kubeadm since 2026-11-20T08:00:00.000000Z'],
  ],
  [
    'whose holder renewed it too long ago is free',
    leaseOf('patcher', { renewTime: microTime(T0 - 2 * MINUTE) }),
    false,
    [],
  ],
  [
    'without a time of renewal is held, because its age is unknown',
    { ...leaseOf('patcher'), spec: { holderIdentity: 'patcher', leaseDurationSeconds: 60 } },
    false,
    ['Lease refit-system/disruption is held by patcher'],
  ],
])('the Lease %s', async (_title, lease, isOurs, messages) => {
  const api = new MemoryApi();
  if (lease) api.put(leases, lease);
  const { known, unseen } = await look(api, ['DisruptionLease']);
  expect(known.map(({ others }) => others.map(({ message }) => message))).toEqual([messages]);
  expect(known).toMatchObject([{ tool: 'DisruptionLease', isOurs }]);
  expect(unseen).toEqual([]);
  expect(api.calls).toEqual(['get leases/disruption']);
});

test('only the locks of the tools that the policy names are read', async () => {
  const api = new MemoryApi();
  expect(await look(api, ['ClusterAutoscaler'])).toEqual({ known: [], unseen: [] });
  expect(api.calls).toEqual([]);
  await look(api, ['Karpenter']);
  expect(api.calls).toEqual(['get /apis/karpenter.sh']);
  await look(api, ['Kured']);
  expect(api.calls.slice(1)).toEqual(['list daemonsets']);
});

test('a lock that cannot be read is not reported as held, and the problem is named', async () => {
  const api = new MemoryApi();
  api.before('get leases', () => {
    throw refusal(403, 'Forbidden', 'not\u001b[31m allowed');
  });
  expect(await look(api, ['DisruptionLease'])).toEqual({
    known: [{ tool: 'DisruptionLease', others: [], isOurs: true }],
    unseen: ['who holds Lease refit-system/disruption: not\uFFFD[31m allowed'],
  });
});

test('a cluster without Kured is reported, and a cluster with Kured is not', async () => {
  const api = new MemoryApi();
  const missing = await look(api, ['Kured']);
  expect(missing.known).toMatchObject([
    {
      others: [],
      isOurs: true,
      notFound: expect.stringMatching(/no DaemonSet .* runs it/) as string,
    },
  ]);
  api.put(daemonSets, kuredWith({ nodeID: OURS, created: later(0) }));
  expect(await look(api, ['Kured'])).toEqual({
    known: [{ tool: 'Kured', others: [], isOurs: true }],
    unseen: [],
  });
});

test('a lock of Kured whose node is no text counts as held for an unknown node', async () => {
  const api = new MemoryApi();
  api.put(daemonSets, kuredWith({ nodeID: 5, created: later(0) }));
  const { known, unseen } = await look(api, ['Kured']);
  expect(known).toMatchObject([
    { isOurs: false, others: [{ message: 'Kured holds its lock for an unknown node' }] },
  ]);
  expect(unseen).toEqual([]);
});
