/** Tests the orchestrator on a real API server: two updaters over HTTPS update one Machine together, or leave it untouched. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createMachine, installMachines } from '../../sandbox/cluster/machines.ts';
import { hookUpdater } from '../../sandbox/orchestrator/hook-updater.ts';
import { machineSubject } from '../../sandbox/orchestrator/machine-subject.ts';
import type { Run } from '../../sandbox/orchestrator/run.ts';
import { runUpdate } from '../../sandbox/orchestrator/runner.ts';
import type { Triple } from '../../src/api/capi/hooks.ts';
import { machines } from '../../src/api/capi/machine.ts';
import { customResourceDefinitions } from '../../src/api/crd.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { systemClock } from '../../src/util/clock.ts';
import { createAuthority, validFrom } from '../../tools/controlplane/certs.ts';
import { type StubUpdater, startStubUpdater } from '../capi/stub-updater.ts';
import { kubeconfigFor } from './control-plane.ts';

const SUBJECT = { commonName: 'stubs' };
const authority = { subject: SUBJECT, pair: createAuthority(SUBJECT, validFrom(Date.now())) };
const options = { namespace: 'default' };
let client: KubeClient;

beforeAll(async () => {
  client = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  await installMachines(client, systemClock);
});

afterAll(async () => {
  await client.delete(customResourceDefinitions, 'machines.cluster.x-k8s.io');
  client.close();
});

async function tripleOf(name: string): Promise<Triple> {
  const { metadata, spec } = await client.get(machines, name, options);
  const companion = (kind: string, own: object) => ({ kind, metadata: { name }, spec: own });
  return {
    machine: { kind: 'Machine', metadata: { name: metadata.name, namespace: 'default' }, spec },
    infrastructureMachine: companion('StandInMachine', { size: 1 }),
    bootstrapConfig: companion('StandInConfig', {}),
  };
}

function changed(current: Triple, version: string, size: number): Triple {
  const machine = current['machine'];
  const infrastructureMachine = current['infrastructureMachine'];
  if (!machine || !infrastructureMachine) throw new Error('there is no Machine');
  return {
    ...current,
    machine: { ...machine, spec: { ...(machine.spec as object), version } },
    infrastructureMachine: { ...infrastructureMachine, spec: { size } },
  };
}

async function run(name: string, desired: Triple, stubs: readonly StubUpdater[]): Promise<Run> {
  const subject = await machineSubject(client, name, 'default');
  const updaters = stubs.map(({ endpoint }) => hookUpdater(endpoint));
  return await runUpdate({ subject, updaters, clock: systemClock }, await tripleOf(name), desired);
}

const versions = { name: 'versions', authority, patches: { machinePatch: { spec: { version: 'v1.35.1' } } }, calls: 1 };
const sizes = { name: 'sizes', authority, patches: { infrastructureMachinePatch: { spec: { size: 2 } } }, calls: 0 };

test('two updaters do their parts one after the other', async () => {
  await using first = await startStubUpdater(versions);
  await using second = await startStubUpdater(sizes);
  await createMachine(client, { name: 'both', version: 'v1.35.0', node: 'n1' });
  const current = await tripleOf('both');
  const desired = changed(current, 'v1.35.1', 2);
  const { state, steps } = await run('both', desired, [first, second]);
  expect({ state, steps }).toEqual({
    state: 'done',
    steps: [
      { updater: 'versions', claimed: ['machine.spec.version'] },
      { updater: 'sizes', claimed: ['infraMachine.spec.size'] },
    ],
  });
  // The first one never gets the size; the second one gets all.
  expect(first.updates).toEqual([changed(current, 'v1.35.1', 1), changed(current, 'v1.35.1', 1)]);
  expect(second.updates).toEqual([desired]);
  expect((await client.get(machines, 'both', options)).spec?.version).toBe('v1.35.1');
  // A later run finds that it is done and calls no updater.
  expect((await run('both', desired, [first, second])).state).toBe('done');
  expect([first.updates.length, second.updates.length]).toEqual([2, 1]);
});

test('a change that no updater covers is named and leaves the Machine as it is', async () => {
  await using only = await startStubUpdater(versions);
  const before = await createMachine(client, { name: 'alone', version: 'v1.35.0', node: 'n2' });
  const { state, message } = await run('alone', changed(await tripleOf('alone'), 'v1.35.1', 2), [only]);
  expect({ state, message }).toEqual({
    state: 'failed',
    message: 'InsufficientCoverage: no updater covers infraMachine.spec.size',
  });
  expect(only.updates).toEqual([]);
  expect(await client.get(machines, 'alone', options)).toEqual(before);
});

test('an updater that cannot be reached: nothing is written', async () => {
  const before = await createMachine(client, { name: 'lost', version: 'v1.35.0', node: 'n3' });
  const gone = await startStubUpdater(versions);
  await gone[Symbol.asyncDispose]();
  await expect(run('lost', changed(await tripleOf('lost'), 'v1.35.1', 1), [gone])).rejects.toThrow(/ECONNREFUSED/);
  expect(await client.get(machines, 'lost', options)).toEqual(before);
});
