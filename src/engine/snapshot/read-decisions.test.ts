/**
 * Tests what the leader reads from a NodeRollout, and what it does if the NodeRollout is missing or the API server
 * refuses to return it.
 */
import { expect, test } from 'vitest';
import { tableDialect } from '../../../test/support/builders/table-dialect.ts';
import type { KubeClient } from '../../kube/client.ts';
import { StatusError } from '../../kube/status-error.ts';
import { readDecisions } from './read-decisions.ts';

const dialect = { ...tableDialect, nodeRollouts: { namespace: 'ns' } };
const PLAN = { metadata: { name: 'plan' } };

async function read(answer: () => unknown, of = dialect) {
  const get = async () => await Promise.resolve().then(answer);
  return await readDecisions({ get } as unknown as KubeClient, of, PLAN);
}

function refused(code: number, details: object): never {
  throw new StatusError({ kind: 'Status', code, message: 'refused', details });
}

const NONE = {
  plan: 'table/plan',
  place: 'ns/table-plan',
  exists: true,
  approvals: [],
  accepted: [],
};

test('only the valid decisions of a NodeRollout are read', async () => {
  const approval = { wave: 2, by: 'ada', run: 'u/1' };
  const spec = { approvals: [approval, { wave: 3 }], accepted: 'all' };
  expect(await read(() => ({ spec }))).toEqual({ ...NONE, approvals: [approval] });
  expect(await read(() => ({}))).toEqual(NONE);
});

test('a NodeRollout that does not exist yet holds no decisions', async () => {
  const found = await read(() => refused(404, { name: 'table-plan' }));
  expect(found).toEqual({ ...NONE, exists: false });
});

test('a missing definition or right is no missing decision', async () => {
  await expect(read(() => refused(404, {}))).rejects.toThrow('does not serve NodeRollouts');
  await expect(read(() => refused(403, { name: 'table-plan' }))).rejects.toThrow('refused');
});

test('reading the decisions of a plan that can have no NodeRollout is an error', async () => {
  await expect(readDecisions({} as KubeClient, tableDialect, PLAN)).rejects.toThrow(
    'table/plan has no NodeRollout',
  );
});
