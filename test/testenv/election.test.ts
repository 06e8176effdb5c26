/** Tests the election on a real API server, with a proxy in front of each candidate: partition, return, and handover. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { KubeClient } from '../../src/kube/client.ts';
import type { ClusterConfig } from '../../src/kube/config/cluster-config.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createElection, type Election } from '../../src/kube/election/election.ts';
import { guardedClient } from '../../src/kube/election/write-guard.ts';
import { type Lease, leases, namespaces } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { microTime, sleep, systemClock } from '../../src/util/clock.ts';
import { startTcpProxy, type TcpProxy } from '../faults/tcp-proxy.ts';
import { kubeconfigFor } from './control-plane.ts';

const NAMESPACE = 'election-test';
/** Short, to keep the test short. The server accepts whole seconds only. */
const SHORT = { leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 300 };
const LONG = { leaseDurationMs: 600_000, renewDeadlineMs: 10_000, retryPeriodMs: 300 };
const PATIENCE = { timeout: 150_000, interval: 200 };

let config: ClusterConfig;
let direct: KubeClient;

beforeAll(async () => {
  config = await loadClusterConfig({ path: await kubeconfigFor('admin') });
  direct = createClient(config);
  await direct.create(namespaces, { metadata: { name: NAMESPACE } });
});
afterAll(async () => {
  await direct.delete(namespaces, NAMESPACE);
  direct.close();
});

interface Candidate {
  readonly election: Election;
  readonly proxy: TcpProxy;
  stop(): Promise<void>;
}

/** A candidate behind its own proxy. It writes to `<name>-register` whenever the write guard allows it. */
async function stand(identity: string, name: string, times: typeof SHORT): Promise<Candidate> {
  const { hostname, port } = new URL(config.server);
  const proxy = await startTcpProxy({ target: { host: hostname, port: Number(port) } });
  const client = createClient({ ...config, server: `https://127.0.0.1:${proxy.port}` });
  const election = createElection({ client, namespace: NAMESPACE, name, identity, ...times });
  const stop = new AbortController();
  const running = Promise.all([
    election.run(stop.signal),
    write(client, election, `${name}-register`, stop.signal),
  ]);
  const end = async (): Promise<void> => {
    stop.abort();
    await running;
  };
  onTestFinished(async () => {
    proxy.heal();
    await end();
    client.close();
    await proxy.stop();
  });
  return { election, proxy, stop: end };
}

async function write(
  client: KubeClient,
  election: Election,
  register: string,
  abort: AbortSignal,
): Promise<void> {
  const guarded = guardedClient(client, election);
  const options = { namespace: NAMESPACE, deadlineMs: 1_000 };
  while (!abort.aborted) {
    await sleep(systemClock, 20, abort).catch(() => undefined);
    const seen = await client.get(leases, register, options).catch(() => undefined);
    const term = election.term();
    if (!seen || !term) continue;
    // The server ignores writes without a change: the time makes each one different.
    const renewTime = microTime(systemClock.now());
    const spec = { holderIdentity: election.identity, leaseTransitions: term.number, renewTime };
    await guarded.replace(leases, { ...seen, spec }, options).catch(() => undefined);
  }
}

/**
 * Records the writes that the API server accepted, in their order, as `holder@term`. Equal writes in a row are one
 * entry.
 */
async function watchRegister(name: string): Promise<{ terms: string[]; writes: () => number }> {
  const created = await direct.create<Lease>(leases, { metadata: { name, namespace: NAMESPACE } });
  const terms = [] as string[];
  const stop = new AbortController();
  const count = { writes: 0 };
  onTestFinished(() => stop.abort());
  const { resourceVersion } = created.metadata;
  const events = direct.watch(leases, {
    namespace: NAMESPACE,
    fieldSelector: `metadata.name=${name}`,
    resourceVersion,
    abort: stop.signal,
  });
  const follow = async (): Promise<void> => {
    for await (const event of events) {
      if (event.type !== 'MODIFIED') continue;
      const { holderIdentity, leaseTransitions } = event.object.spec ?? {};
      const term = `${holderIdentity}@${leaseTransitions}`;
      count.writes++;
      if (terms.at(-1) !== term) terms.push(term);
    }
  };
  follow().catch(() => undefined);
  return { terms, writes: () => count.writes };
}

test('a leader that loses the API server stops, another candidate leads, and the first one returns as follower', async () => {
  const { terms, writes } = await watchRegister('partition-register');
  const one = await stand('one', 'partition', SHORT);
  await expect.poll(() => terms, PATIENCE).toEqual(['one@0']);
  const two = await stand('two', 'partition', SHORT);
  await expect.poll(() => two.election.leader(), PATIENCE).toBe('one');
  one.proxy.partition();
  await expect.poll(() => one.election.term(), PATIENCE).toBeUndefined();
  expect(two.election.term()).toBeUndefined();
  await expect.poll(() => terms, PATIENCE).toEqual(['one@0', 'two@1']);
  one.proxy.heal();
  await expect.poll(() => one.election.leader(), PATIENCE).toBe('two');
  const before = writes();
  await expect.poll(() => writes() - before, PATIENCE).toBeGreaterThan(5);
  expect(terms).toEqual(['one@0', 'two@1']);
});

test('a leader that stops hands over leadership at once, not when the Lease expires', async () => {
  const { terms } = await watchRegister('handover-register');
  const one = await stand('one', 'handover', LONG);
  await expect.poll(() => terms, PATIENCE).toEqual(['one@0']);
  await stand('two', 'handover', LONG);
  await one.stop();
  await expect.poll(() => terms, PATIENCE).toEqual(['one@0', 'two@1']);
  const { spec } = await direct.get(leases, 'handover', { namespace: NAMESPACE });
  expect(spec).toMatchObject({
    holderIdentity: 'two',
    leaseDurationSeconds: 600,
    leaseTransitions: 1,
  });
});
