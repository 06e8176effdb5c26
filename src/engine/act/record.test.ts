/** Which targets an abort may release: those without a signal, as the API server says. And what a record waits for. */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../../test/builders/memory-api.ts';
import { buildNode } from '../../../test/builders/nodes.ts';
import { buildRollout } from '../../../test/builders/rollouts.ts';
import { buildStage } from '../../../test/builders/stages.ts';
import { buildTablePlan, tableDialect } from '../../../test/builders/table-dialect.ts';
import { buildTarget } from '../../../test/builders/targets.ts';
import { jobs, nodes } from '../../kube/resources.ts';
import type { Dialect, Instruction, World } from '../dialect.ts';
import type { RecordedState, Rollout, RolloutPhase } from '../model/rollout.ts';
import { OwnWrites } from '../observe/world.ts';
import { areNotYetSignalled, record } from './record.ts';

const WORLD: World = { get: () => undefined, list: () => [] };

function rolloutWith(state: RecordedState): Rollout {
  return buildRollout([buildStage('worker', [buildTarget('w1', state)])]);
}

function telling(instruction: Instruction | undefined): Dialect<ReturnType<typeof buildTablePlan>> {
  return { ...tableDialect, signal: { ...tableDialect.signal, send: () => instruction } };
}

async function mayRelease(api: MemoryApi, instruction: Instruction | undefined, after: RecordedState) {
  const parts = { dialect: telling(instruction), client: api.client, world: WORLD, ownWrites: new OwnWrites() };
  return await areNotYetSignalled(parts, buildTablePlan({}), rolloutWith('intended'), rolloutWith(after));
}

test('an unchanged object has no signal; a changed one may have one', async () => {
  const api = new MemoryApi();
  const object = api.put(nodes, buildNode('w1'));
  expect(await mayRelease(api, { kind: 'replace', resource: nodes, object }, 'pending')).toBe(true);
  api.put(nodes, object);
  expect(await mayRelease(api, { kind: 'replace', resource: nodes, object }, 'pending')).toBe(false);
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

const recordRows: [string, beside: boolean, RolloutPhase, isRecorded: boolean][] = [
  ['does not wait for what may stand beside it', true, 'running', true],
  ['waits for what must come first', false, 'running', false],
  ['waits for everything if it tells of the end', true, 'done', false],
];

test.each(recordRows)('the record of a target that is done %s', async (_name, beside, phase, isRecorded) => {
  const api = new MemoryApi();
  const plan = api.put(tableDialect.plans, buildTablePlan({ workers: ['w1'] }));
  const object = api.put(nodes, buildNode('w1'));
  api.put(nodes, object);
  const finish = (): Instruction => ({ kind: 'replace', resource: nodes, object, beside });
  const dialect = { ...tableDialect, signal: { ...tableDialect.signal, finish } };
  const parts = { dialect, client: api.client, world: WORLD, ownWrites: new OwnWrites() };
  expect(await record(parts, plan, rolloutWith('intended'), { ...rolloutWith('done'), phase }, 0)).toBe(isRecorded);
});
