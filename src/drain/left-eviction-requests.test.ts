/** Shows which EvictionRequests of an earlier process a leader withdraws. */
import { expect, test } from 'vitest';
import { EvictionRequestApi } from '../../test/support/builders/eviction-request-api.ts';
import { PodApi, refuse } from '../../test/support/builders/pod-api.ts';
import { buildPod } from '../../test/support/builders/pods.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import type { KubeClient } from '../kube/client.ts';
import { type Node, nodes, type Resource } from '../kube/resources.ts';
import { silentLogger } from '../util/log.ts';
import { requestFor } from './eviction-request-objects.ts';
import { createDrains } from './running-drains.ts';

const UID = '0c5dc5a9-8d5e-4b3f-9a5e-00000000000';

/** Requests for pods `a` on a cordoned node, `b` on a schedulable one, `c` on one that is gone, and `d` that name no node. */
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

test('those of nodes that are schedulable again or gone, once a minute while a policy uses requests', async () => {
  const { lifecycle, cordons, client } = setUp();
  const clock = new FakeClock();
  let isUsed = false;
  const usesRequests = (): boolean => isUsed;
  const drains = createDrains({
    client,
    clock,
    random: () => 0.99,
    log: silentLogger,
    usesRequests,
  });
  const stop = new AbortController();
  const term = drains.run(stop.signal);
  await clock.advance(60_000);
  expect(lifecycle.calls).toEqual([]);
  isUsed = true;
  await clock.advance(60_000);
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
  stop.abort();
  await term;
  expect(clock.pending).toBe(0);
});
