/** Tests the requests with which Refit reads and changes the disruption Lease, and what it says about other holders. */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../test/support/builders/memory-api.ts';
import { T0 } from '../../test/support/clock/times.ts';
import { type Lease, leases } from '../kube/resources.ts';
import { microTime } from '../util/clock.ts';
import { disruptionLease } from './disruption-lease.ts';
import type { LockClient, Look } from './tool.ts';

const PLACE = { namespace: 'refit-system', name: 'disruption' };
const OURS = 'refit/table';
const ABORT = new AbortController().signal;
const LOOK: Look = {
  holder: OURS,
  isOwn: (holder) => holder === OURS,
  now: T0,
  ageOf: () => 0,
  abort: ABORT,
};

function leaseWith(spec: NonNullable<Lease['spec']>): Lease {
  return { metadata: { ...PLACE, uid: 'lease-uid' }, spec };
}

function apiWith(lease?: Lease): MemoryApi {
  const api = new MemoryApi();
  if (lease) api.put(leases, lease);
  return api;
}

/** Returns a client that records the options of each request. */
function recordingClient(api: MemoryApi): { client: LockClient; options: unknown[] } {
  const options: unknown[] = [];
  const { client } = api;
  const recording: Partial<LockClient> = {
    get: async (resource, name, more) => {
      options.push(more);
      return await client.get(resource, name, more);
    },
    create: async (resource, object, more) => {
      options.push(more);
      return await client.create(resource, object, more);
    },
    replace: async (resource, object, more) => {
      options.push(more);
      return await client.replace(resource, object, more);
    },
  };
  return { client: recording as LockClient, options };
}

test.each<[string, Lease | undefined]>([
  ['creates', undefined],
  ['replaces', leaseWith({ holderIdentity: '' })],
])(
  'Refit reads and %s the Lease in its namespace, and an abort ends the read',
  async (_title, lease) => {
    const { client, options } = recordingClient(apiWith(lease));
    const view = await disruptionLease.look(client, LOOK);
    await view.take?.();
    expect(options).toEqual([
      { namespace: 'refit-system', abort: ABORT },
      { namespace: 'refit-system' },
    ]);
  },
);

test('a Lease that Refit takes from an earlier holder counts one more transition and has new times', async () => {
  const acquireTime = microTime(T0 - 5_000);
  const api = apiWith(leaseWith({ holderIdentity: '', acquireTime, leaseTransitions: 4 }));
  const view = await disruptionLease.look(api.client, LOOK);
  await view.take?.();
  expect(api.read(leases, PLACE.name).spec).toEqual({
    holderIdentity: OURS,
    leaseDurationSeconds: 300,
    acquireTime: microTime(T0),
    renewTime: microTime(T0),
    leaseTransitions: 5,
  });
});

test.each<[string, Lease | undefined]>([
  ['that does not exist', undefined],
  ['that nobody holds', leaseWith({ holderIdentity: '' })],
  ['of another holder', leaseWith({ holderIdentity: 'patcher', leaseDurationSeconds: 60 })],
])('Refit never releases a Lease %s', async (_title, lease) => {
  const api = apiWith(lease);
  const view = await disruptionLease.look(api.client, LOOK);
  await view.giveBack?.();
  expect(view.renewedAt).toBeUndefined();
  expect(api.calls).toEqual(['get leases/disruption']);
});

test('a Lease of Refit without a time of renewal is renewed at once', async () => {
  const api = apiWith(leaseWith({ holderIdentity: OURS }));
  expect((await disruptionLease.look(api.client, LOOK)).renewedAt).toBe(0);
});

const TIME = microTime(T0);

test.each<[string, NonNullable<Lease['spec']>, string, string]>([
  [
    'has a duration and a time of acquisition',
    { leaseDurationSeconds: 60, acquireTime: TIME },
    ` since ${TIME}`,
    ', or has not renewed it for 1 min',
  ],
  ['has only a time of renewal', { renewTime: TIME }, ` since ${TIME}`, ''],
  ['has no times', {}, '', ''],
])(
  'if the Lease of another holder %s, the message says that and no more',
  async (_title, spec, since, expires) => {
    const api = apiWith(leaseWith({ holderIdentity: 'patcher', ...spec }));
    const { others } = await disruptionLease.look(api.client, LOOK);
    expect(others).toEqual([
      {
        tool: 'DisruptionLease',
        message: `Lease refit-system/disruption is held by patcher${since}`,
        ends: `patcher releases the Lease${expires}`,
      },
    ]);
  },
);
