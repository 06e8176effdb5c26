/** Tests which targets an abort may release: only targets that have no signal on the API server. */

import { expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTablePlan, tableDialect } from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { NO_FAILURES } from '../../../test/support/builders/whole-records.ts';
import type { KubeClient } from '../../kube/client.ts';
import { jobs, nodes } from '../../kube/resources.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { TouchedObject } from '../contract/signal.ts';
import type { World } from '../contract/world.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import { DEFAULT_POLICY } from '../policy/rollout-policy.ts';
import { OwnWrites } from '../snapshot/world.ts';
import { areNotYetSignalled } from './record.ts';

const WORLD: World = { get: () => undefined, list: () => [] };

function rolloutWith(state: RecordedState): Rollout {
  return buildRollout([buildStage('worker', [buildTarget('w1', state)])]);
}

function touching(object: TouchedObject | undefined): Dialect<ReturnType<typeof buildTablePlan>> {
  return { ...tableDialect, signal: { ...tableDialect.signal, touches: () => object } };
}

async function mayRelease(
  api: MemoryApi,
  object: TouchedObject | undefined,
  after: RecordedState,
  before: RecordedState = 'intended',
) {
  const parts = {
    dialect: touching(object),
    client: api.client,
    world: WORLD,
    ownWrites: new OwnWrites(),
  };
  const change = {
    plan: buildTablePlan({}),
    policy: DEFAULT_POLICY,
    before: rolloutWith(before),
    after: rolloutWith(after),
    failures: NO_FAILURES,
  };
  return await areNotYetSignalled(parts, change);
}

test('an unchanged object has no signal; a changed one may have one', async () => {
  const api = new MemoryApi();
  const object = api.put(nodes, buildNode('w1'));
  expect(await mayRelease(api, { resource: nodes, object }, 'pending')).toBe(true);
  api.put(nodes, object);
  expect(await mayRelease(api, { resource: nodes, object }, 'pending')).toBe(false);
});

test('an existing Job counts as signalled', async () => {
  const api = new MemoryApi();
  const told = { resource: jobs, object: { metadata: { name: 'job' } }, isAbsent: true };
  expect(await mayRelease(api, told, 'pending')).toBe(true);
  api.put(jobs, { metadata: { name: 'job' } });
  expect(await mayRelease(api, told, 'pending')).toBe(false);
});

test('work outside of the API is never on its way by a cache that is stale', async () => {
  const api = new MemoryApi();
  expect(await mayRelease(api, undefined, 'pending')).toBe(true);
  expect(api.calls).toEqual([]);
});

test('a target that was never signalled, or has ended, is given back without a request', async () => {
  const api = new MemoryApi();
  const object = buildNode('gone');
  for (const before of ['failed', 'done', 'pending'] as const)
    expect(await mayRelease(api, { resource: nodes, object }, 'pending', before)).toBe(true);
  expect(api.calls).toEqual([]);
});

test('the leader looks for the signal of the target as it was recorded, in the namespace of the target', async () => {
  const asked: unknown[] = [];
  const object = { metadata: { name: 'job', namespace: 'upgrades' } };
  const abort = new AbortController().signal;
  const get = async (_resource: unknown, name: string, options: object): Promise<never> => {
    asked.push([name, options]);
    return await Promise.reject(refusal(404, 'NotFound'));
  };
  const before = rolloutWith('intended');
  const after = rolloutWith('pending');
  const touches: Dialect['signal']['touches'] = (_world, rollout, stage, target) => {
    expect([rollout, stage.id]).toEqual([before, '0/workers']);
    expect(target.state).toBe('intended');
    return { resource: jobs, object, isAbsent: true };
  };
  const parts = {
    dialect: { ...tableDialect, signal: { ...tableDialect.signal, touches } },
    client: { get } as unknown as KubeClient,
    world: WORLD,
    ownWrites: new OwnWrites(),
    abort,
  };
  const plan = buildTablePlan({});
  const change = { plan, policy: DEFAULT_POLICY, before, after, failures: NO_FAILURES };
  expect(await areNotYetSignalled(parts, change)).toBe(true);
  expect(asked).toEqual([['job', { namespace: 'upgrades', abort }]]);
});

test('a target that is not recorded as intended needs no request', async () => {
  const api = new MemoryApi();
  const object = buildNode('gone');
  expect(await mayRelease(api, { resource: nodes, object }, 'done')).toBe(true);
  expect(api.calls).toEqual([]);
});
