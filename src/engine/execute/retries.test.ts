/** Proves what an ordered retry of targets writes to the plan. */
import { expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildTablePlan, tableDialect } from '../../../test/support/builders/table-dialect.ts';
import { buildWorld } from '../../../test/support/builders/worlds.ts';
import { later } from '../../../test/support/clock/times.ts';
import { annotated } from '../../kube/resources.ts';
import type { Dialect } from '../contract/dialect.ts';
import { ATTEMPTS_ANNOTATION, RETRY_ANNOTATION } from '../model/controls.ts';
import { OwnWrites } from '../snapshot/world.ts';
import { orderRetries } from './retries.ts';

const ORDER = {
  retries: [],
  moments: new Map([
    ['w1', later(5)],
    ['w2', later(6)],
  ]),
  counts: { 'worker/w1': 2, 'worker/w2': 3 },
};
const COUNTED = '{"run":"plan-uid/run-1","attempts":{"worker/w1":2,"worker/w2":3}}';

function sceneWith(annotations: Readonly<Record<string, string>>, planObjects = {}) {
  const api = new MemoryApi();
  const plan = api.put(tableDialect.plans, annotated(buildTablePlan({}), annotations));
  const ownWrites = new OwnWrites();
  const dialect: Dialect<ReturnType<typeof buildTablePlan>> = { ...tableDialect, planObjects };
  const effects = { dialect, client: api.client, world: buildWorld([], []), ownWrites };
  const order = async (): Promise<boolean> =>
    await orderRetries(effects, plan, buildRollout([]), ORDER);
  return { api, order, written: () => api.read(tableDialect.plans, 'plan'), ownWrites };
}

test('one write has the moments of all targets, and the number of each attempt', async () => {
  const { order, written, ownWrites } = sceneWith({});
  expect(await order()).toBe(true);
  expect(written().metadata.annotations).toEqual({
    [RETRY_ANNOTATION]: `w1@${later(5)},w2@${later(6)}`,
    [ATTEMPTS_ANNOTATION]: COUNTED,
  });
  expect(ownWrites.isFresh(written())).toBe(true);
});

test('retries of other targets stay, and an earlier one of the same target is replaced', async () => {
  const { order, written } = sceneWith({ [RETRY_ANNOTATION]: `w9@${later(1)},w1@${later(2)}` });
  await order();
  expect(written().metadata.annotations?.[RETRY_ANNOTATION]).toBe(
    `w9@${later(1)},w1@${later(5)},w2@${later(6)}`,
  );
});

test('the annotations have the prefix of the dialect', async () => {
  const { order, written } = sceneWith({}, { controlPrefix: 'table.example.com/' });
  await order();
  expect(Object.keys(written().metadata.annotations ?? {})).toEqual([
    'table.example.com/retry',
    'table.example.com/attempts',
  ]);
});

test('nothing is written to a plan that has changed', async () => {
  const { api, order, written } = sceneWith({});
  api.before('replace plans', () => {
    throw refusal(409, 'Conflict');
  });
  expect(await order()).toBe(false);
  expect(written().metadata.annotations).toEqual({});
});
