/** Which targets an abort may release: those without a signal, as the API server says. */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../../test/builders/memory-api.ts';
import { buildNode } from '../../../test/builders/nodes.ts';
import { buildRollout } from '../../../test/builders/rollouts.ts';
import { buildStage } from '../../../test/builders/stages.ts';
import { buildTablePlan, tableDialect } from '../../../test/builders/table-dialect.ts';
import { buildTarget } from '../../../test/builders/targets.ts';
import { jobs, nodes } from '../../kube/resources.ts';
import type { Dialect, Instruction, World } from '../dialect.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import { OwnWrites } from '../observe/world.ts';
import { DEFAULT_POLICY } from '../policy/rollout-policy.ts';
import { areNotYetSignalled } from './record.ts';

const WORLD: World = { get: () => undefined, list: () => [] };

function rolloutWith(state: RecordedState): Rollout {
  return buildRollout([buildStage('worker', [buildTarget('w1', state)])]);
}

function telling(instruction: Instruction | undefined): Dialect<ReturnType<typeof buildTablePlan>> {
  return { ...tableDialect, signal: { ...tableDialect.signal, send: () => instruction } };
}

async function mayRelease(
  api: MemoryApi,
  instruction: Instruction | undefined,
  after: RecordedState,
) {
  const parts = {
    dialect: telling(instruction),
    client: api.client,
    world: WORLD,
    ownWrites: new OwnWrites(),
  };
  const change = {
    plan: buildTablePlan({}),
    policy: DEFAULT_POLICY,
    before: rolloutWith('intended'),
    after: rolloutWith(after),
  };
  return await areNotYetSignalled(parts, change);
}

test('an unchanged object has no signal; a changed one may have one', async () => {
  const api = new MemoryApi();
  const object = api.put(nodes, buildNode('w1'));
  expect(await mayRelease(api, { kind: 'replace', resource: nodes, object }, 'pending')).toBe(true);
  api.put(nodes, object);
  expect(await mayRelease(api, { kind: 'replace', resource: nodes, object }, 'pending')).toBe(
    false,
  );
});

test('an existing Job counts as signalled', async () => {
  const api = new MemoryApi();
  const told = { kind: 'create', resource: jobs, object: { metadata: { name: 'job' } } } as const;
  expect(await mayRelease(api, told, 'pending')).toBe(true);
  api.put(jobs, { metadata: { name: 'job' } });
  expect(await mayRelease(api, told, 'pending')).toBe(false);
});

test('other recorded states need no request', async () => {
  const api = new MemoryApi();
  const object = buildNode('gone');
  expect(await mayRelease(api, { kind: 'replace', resource: nodes, object }, 'done')).toBe(true);
  expect(api.calls).toEqual([]);
});
