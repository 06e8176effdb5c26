/** Tests that hundreds of node actions stop when the plan changes, and end together with their reconcile. */

import { expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../test/support/builders/memory-api.ts';
import { buildNode } from '../../test/support/builders/nodes.ts';
import { failed, sent } from '../../test/support/builders/observations.ts';
import { buildReconciler } from '../../test/support/builders/reconcilers.ts';
import { buildRollout } from '../../test/support/builders/rollouts.ts';
import { buildStage } from '../../test/support/builders/stages.ts';
import {
  buildTablePlan,
  cancellable,
  withAnswer,
} from '../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../test/support/builders/targets.ts';
import { nodes } from '../kube/resources.ts';
import { ABORT_ANNOTATION } from './model/controls.ts';

const NAMES = Array.from({ length: 250 }, (_, index) => `w${index}`);

const dialect = cancellable(failed('cancelled'));

/** Returns an API server with a plan that is aborted while all of its nodes are in progress. */
function abortedPlan(): MemoryApi {
  const api = new MemoryApi();
  for (const name of NAMES) api.put(nodes, withAnswer(buildNode(name), sent()));
  const stage = buildStage(
    'worker',
    NAMES.map((name) => buildTarget(name, 'intended')),
  );
  const { metadata, ...plan } = buildTablePlan({ workers: NAMES });
  const annotations = { [ABORT_ANNOTATION]: 'true' };
  api.put(dialect.plans, {
    ...plan,
    metadata: { ...metadata, annotations },
    status: buildRollout([stage]),
  });
  return api;
}

async function lookAt(api: MemoryApi): Promise<unknown> {
  return await buildReconciler(dialect, api).look();
}

const cancelled = (api: MemoryApi): number =>
  api.calls.filter((call) => call.startsWith('replace nodes/')).length;

test('an abort that is removed halfway leaves the other nodes alone', async () => {
  const api = abortedPlan();
  api.before('replace nodes/w0', () =>
    api.change(
      dialect.plans,
      'plan',
      ({ metadata: { annotations: _taken, ...metadata }, ...plan }) => ({
        ...plan,
        metadata,
      }),
    ),
  );
  expect(await lookAt(api)).toEqual({ requeueAfterMs: 1000, restMs: 12.5 });
  expect(cancelled(api)).toBe(100);
});

test('a node action that fails ends the reconcile, and no other node action starts', async () => {
  const api = abortedPlan();
  api.before('replace nodes/w0', () => {
    throw refusal(500, 'InternalError');
  });
  await expect(lookAt(api)).rejects.toThrow('InternalError');
  const before = cancelled(api);
  await new Promise<void>((resolve) => setImmediate(resolve));
  expect([before, cancelled(api)]).toEqual([100, 100]);
});
