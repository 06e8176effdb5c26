/**
 * Tests that nothing is lost if a simulated agent of k0s starts next to the agent of Refit at any step of a signal,
 * whichever agent is faster.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeWorkerProfile } from '../../sandbox/hosts/host.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import type { Node } from '../../src/kube/resources.ts';
import { decodeSignal, encodeSignal } from '../../src/signal/annotations.ts';
import { type MemoryCluster, startMemoryCluster } from '../agent/memory-cluster.ts';
import { NEW, OLD, Rig } from '../agent/rig.ts';
import { K0sNode } from '../support/doubles/k0s-node.ts';
import { Recorder } from '../support/doubles/runtime/recorder.ts';
import { surroundingsFor } from '../support/doubles/surroundings.ts';
import { timesOf } from '../support/doubles/times.ts';
import { WHOLE } from '../support/whole.ts';

let cluster: MemoryCluster;
beforeAll(async () => {
  cluster = await startMemoryCluster();
});
afterAll(async () => await cluster.stop());

/** Starts the agent of k0s on the host, with shorter delays than the original. Dispose the returned value to end it. */
async function startTheirs(node: Rig): Promise<AsyncDisposable> {
  // Writes the profile that k0s finds if it starts while the worker profiles still enable its agent.
  await writeWorkerProfile(node.host.dataDirectory, true);
  const surroundings = surroundingsFor({
    config: await loadClusterConfig({ path: cluster.kubeconfig }),
    author: { by: 'system:node', via: node.host.name },
    recorder: new Recorder(),
    times: { ...timesOf(0.05), boot: 0, firstStatus: 0 },
    apiPort: 0,
  });
  const theirs = new K0sNode({
    ...surroundings,
    host: node.host,
    role: 'worker',
    address: '127.0.0.1',
  });
  theirs.start();
  return {
    async [Symbol.asyncDispose]() {
      await theirs.stop();
      surroundings.close();
    },
  };
}

const STEPS = [
  'before the signal',
  'Downloading',
  'Cordoning',
  'ApplyingUpdate',
  'Restart',
  'UnCordoning',
] as const;

let count = 0;

const RACES = (['observe', 'refuse', 'replace'] as const).flatMap((beside, first) =>
  STEPS.filter((_, index) => WHOLE || (index + first) % 2 === 0).map(
    (step) => [beside, step] as const,
  ),
);

test.each(RACES)('%s: it comes at %s', async (beside, step) => {
  const { admin, kubeconfig } = cluster;
  const name = `raced${process.pid}-${++count}`;
  await using node = await Rig.start({ name, admin, kubeconfig });
  await using things = new AsyncDisposableStack();
  const old = await node.installed();
  const coming = Promise.withResolvers<AsyncDisposable>();
  const come = (): void => void startTheirs(node).then(coming.resolve, coming.reject);
  if (step === 'before the signal') come();
  else node.onStatus = (status) => status === step && come();
  node.startAgent('--beside-k0s', beside, '--soak', '200ms', '--restart-timeout', '5s');
  await node.send('/new', NEW);
  things.use(await coming.promise);
  await node.end();
  // Whichever agent was faster, the host runs one of the two versions. The agent of k0s may still restart the service
  // after the agent of Refit has reported that the signal failed.
  await node.until(async () => expect([OLD, NEW]).toContain(await node.host.version()));
  const version = await node.host.version();
  const status = node.statuses.at(-1);
  if (status === 'Completed') expect(version).toBe(NEW);
  // The previous binary is never the binary of the wanted version.
  const wayBack = await node.installed('.previous').catch(() => old);
  expect(wayBack).toBe(old);
  await node.until(async () =>
    expect(((await node.object()) as Node).spec?.unschedulable).toBeFalsy(),
  );
  expect((await node.leftovers()).filter((file) => !file.startsWith('k0s.tmp'))).toEqual([]);
  if (beside === 'observe') expect([status, version]).toEqual(['Completed', NEW]);
});

test.each([
  ['observe', 'Cordoning'],
  ['observe', 'Restart'],
  ['refuse', 'ApplyingUpdate'],
  ['refuse', 'UnCordoning'],
])('%s: a signal found at %s without a report of ours is left to theirs', async (beside, found) => {
  const { admin, kubeconfig } = cluster;
  const name = `found${process.pid}-${++count}`;
  await using node = await Rig.start({ name, admin, kubeconfig, ownAgent: true });
  await node.send('/new', NEW);
  const write = async (status: string): Promise<void> => {
    const signal = decodeSignal((await node.object()).metadata.annotations);
    if (signal === undefined) throw new Error('no signal');
    await node.annotate(encodeSignal({ ...signal, status: { status, timestamp: node.created } }));
  };
  await write(found);
  const agent = node.startAgent('--beside-k0s', beside);
  const log = (): string => agent.log.join('\n');
  await node.until(() => expect(log()).toMatch(/standing aside|"step":|reported/));
  expect(log()).toContain(
    `another agent reported ${found}, so k0s's own agent works on this signal`,
  );
  await write('Completed');
  await node.end();
  expect(node.statuses).toEqual([found, 'Completed']);
  expect(node.server.requests).toEqual([]);
});
