/** Shows which EvictionRequests of an earlier process are withdrawn by a leader. */
import { expect, test } from 'vitest';
import { EvictionRequestApi } from '../../test/support/builders/eviction-request-api.ts';
import { buildLog } from '../../test/support/builders/logs.ts';
import { PodApi, refuse } from '../../test/support/builders/pod-api.ts';
import { buildPod } from '../../test/support/builders/pods.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import type { KubeClient } from '../kube/client.ts';
import { type Node, nodes, type Resource } from '../kube/resources.ts';
import { TransportError } from '../kube/status-error.ts';
import { silentLogger } from '../util/log.ts';
import { requestFor } from './eviction-request-objects.ts';
import { createDrains } from './running-drains.ts';

const UID = '0c5dc5a9-8d5e-4b3f-9a5e-00000000000';

/**
 * Sets up requests for the pods `a` on a cordoned node, `b` on a schedulable node, `c` on a deleted node, and `d`,
 * whose request names no node.
 */
function setUp() {
  const lifecycle = new EvictionRequestApi();
  for (const [index, [pod, node]] of Object.entries({
    a: 'n1',
    b: 'n2',
    c: 'n3',
    d: 'n2',
  }).entries()) {
    const request = requestFor(buildPod(pod, { uid: `${UID}${index}` }), node);
    if (pod === 'd') delete request.metadata.annotations;
    lifecycle.requests.set(`default/${request.metadata.name}`, request);
  }
  const cordons = new Map([
    ['n1', true],
    ['n2', false],
  ]);
  const others = new PodApi().client;
  const get = async (resource: Resource, name: string): Promise<Node> => {
    await Promise.resolve();
    const unschedulable = cordons.get(name);
    if (resource.plural !== nodes.plural || unschedulable === undefined)
      throw refuse({ code: 404, reason: 'NotFound' });
    return { metadata: { name }, spec: { unschedulable } };
  };
  const client = { ...others, get } as unknown as KubeClient;
  return { lifecycle, cordons, client: lifecycle.over(client) };
}

/** Returns a leader. Its policies allow drains to use EvictionRequests only while `isUsed()` returns true. */
function lead(client: KubeClient, isUsed: () => boolean, log = silentLogger) {
  const clock = new FakeClock();
  const parts = { client, clock, random: () => 0.99, log };
  const drains = createDrains({ ...parts, usesRequests: isUsed });
  const begin = () => {
    const stop = new AbortController();
    const term = drains.run(stop.signal);
    return async () => {
      stop.abort();
      await term;
      expect(clock.pending).toBe(0);
    };
  };
  return { clock, begin };
}

test('those of nodes that are schedulable again or gone, once a minute while a policy uses requests', async () => {
  const { lifecycle, cordons, client } = setUp();
  const { clock, begin } = lead(client, () => true);
  const end = begin();
  await clock.advance(0);
  expect(lifecycle.requested()).toEqual(['a', 'd']);
  cordons.set('n1', false);
  lifecycle.onList = () => {
    throw refuse({ code: 403, reason: 'Forbidden' });
  };
  await clock.advance(60_000);
  expect(lifecycle.requested()).toEqual(['a', 'd']);
  lifecycle.onList = () => undefined;
  await clock.advance(60_000);
  expect(lifecycle.requested()).toEqual(['d']);
  await end();
});

test('although no policy uses requests any more, until none is left', async () => {
  const { lifecycle, cordons, client } = setUp();
  const { clock, begin } = lead(client, () => false);
  const end = begin();
  await clock.advance(60_000);
  expect(lifecycle.requested()).toEqual(['a', 'd']);
  cordons.set('n1', false);
  await clock.advance(60_000);
  expect(lifecycle.requested()).toEqual(['d']);
  const { length } = lifecycle.calls;
  await clock.advance(10 * 60_000);
  expect(lifecycle.calls.slice(length)).toEqual([]);
  await end();
});

test.each([
  ['not allowed', 403, 'Forbidden'],
  ['not served', 404, 'NotFound'],
])('a leader that is %s to list them asks once in a term', async (_, code, reason) => {
  const { lifecycle, client } = setUp();
  lifecycle.onList = () => {
    throw refuse({ code, reason });
  };
  const { clock, begin } = lead(client, () => false);
  for (const terms of [1, 2]) {
    const end = begin();
    await clock.advance(10 * 60_000);
    expect(lifecycle.calls.filter((call) => call.startsWith('list'))).toHaveLength(terms);
    await end();
  }
});

test('a leader lists no requests where the API server says that it serves none', async () => {
  const { lifecycle, client } = setUp();
  lifecycle.isServed = false;
  const { clock, begin } = lead(client, () => false);
  const end = begin();
  await clock.advance(10 * 60_000);
  expect(lifecycle.calls).toEqual([expect.stringMatching(/^raw /)]);
  await end();
});

test('a leader without an answer asks again', async () => {
  const { lifecycle, client } = setUp();
  lifecycle.onList = () => {
    throw new TransportError('no answer');
  };
  const { clock, begin } = lead(client, () => false);
  const end = begin();
  await clock.advance(60_000);
  lifecycle.onList = () => undefined;
  await clock.advance(60_000);
  expect(lifecycle.requested()).toEqual(['a', 'd']);
  await end();
});

test('a request that cannot be withdrawn holds up no other, and is tried again', async () => {
  const { lifecycle, client } = setUp();
  lifecycle.onDelete = (key) => {
    if (key.endsWith('1')) throw refuse({ code: 403, reason: 'Forbidden' });
  };
  const lines: string[] = [];
  const { clock, begin } = lead(client, () => false, buildLog(lines, 'warn'));
  const end = begin();
  await clock.advance(0);
  expect(lifecycle.requested()).toEqual(['a', 'b', 'd']);
  await clock.advance(10 * 60_000);
  expect(lines).toHaveLength(1);
  lifecycle.onDelete = () => undefined;
  await clock.advance(60_000);
  expect(lifecycle.requested()).toEqual(['a', 'd']);
  await end();
});
