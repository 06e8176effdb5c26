/**
 * Tests that a kubelet that reports an endless upgrade cannot stop the upgrade of other nodes. Otherwise no maintenance
 * window would be long enough for the other nodes, and they would wait even without windows.
 */
import { expect, test } from 'vitest';
import { plans } from '../../src/api/autopilot/plan.ts';
import { autopilot } from '../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import { createReconciler } from '../../src/engine/loop.ts';
import { viewsOf } from '../../src/engine/snapshot/world.ts';
import { nodes } from '../../src/kube/resources.ts';
import { decodeReport, decodeSignal } from '../../src/signal/annotations.ts';
import { REPORT_ANNOTATION, ROLLOUT_ANNOTATION } from '../../src/signal/names.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { knowledgeOf } from '../support/builders/knowledge.ts';
import { MemoryApi } from '../support/builders/memory-api.ts';
import { buildNode } from '../support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../support/builders/plans.ts';
import { buildPolicy } from '../support/builders/rollout-policies.ts';
import { buildSignal } from '../support/builders/signals.ts';
import { recorded, statusOf } from '../support/builders/views.ts';
import { FakeClock } from '../support/clock/fake-clock.ts';
import { HOUR, MINUTE, T0 } from '../support/clock/times.ts';

/** The preconditions use discovery, which the API server in memory does not support. */
const { preconditions: _unasked, ...dialect } = autopilot;
const ATTEMPT = rfc3339(T0);

/** w1 has completed its upgrade and reports these durations. Resolves with true if w2 is then signalled. */
async function goesOn(spent: string, windows = buildPolicy().windows): Promise<boolean> {
  const api = new MemoryApi();
  const workers = { ...listed('w1', 'w2'), limits: { concurrent: 1 } };
  const commands = [{ k0supdate: buildUpdate({ targets: { workers } }) }];
  const states = recorded({ w1: 'SignalCompleted', w2: 'SignalPending' }, ATTEMPT);
  api.put(plans, buildPlan({ commands }, statusOf('SchedulableWait', [], states)));
  const report = `{"created":${JSON.stringify(ATTEMPT)},"from":"v1.36.3+k0s.0","spent":${spent}}`;
  const annotations = {
    ...buildSignal({ created: ATTEMPT, status: 'Completed' }),
    [ROLLOUT_ANNOTATION]: `plan-uid/${ATTEMPT}`,
    [REPORT_ANNOTATION]: report,
  };
  api.put(nodes, buildNode('w1', { annotations }));
  api.put(nodes, buildNode('w2'));
  const views = autopilot.watched.map(({ resource }) => [resource, api.view(resource)] as const);
  const planView = api.view(plans);
  const reconcile = createReconciler({
    dialect,
    client: api.client,
    plans: planView,
    ...knowledgeOf(viewsOf(views)),
    policyFor: () => buildPolicy({ windows }),
    clock: new FakeClock(T0 + MINUTE),
    prober: { askControlPlane: async () => await Promise.resolve([]) },
  });
  for (let calls = -1; calls < api.calls.length; ) {
    calls = api.calls.length;
    for (const view of [planView, ...views.map(([, each]) => each)]) view.catchUp();
    await reconcile('autopilot');
  }
  return decodeSignal(api.read(nodes, 'w2').metadata.annotations) !== undefined;
}

const startMinute = (T0 / MINUTE) % (24 * 60);
const TWO_HOURS = { days: [], startMinute, lengthMs: 2 * HOUR, timeZone: 'UTC' };

test.each([
  ['the truth', 'Downloading":1000'],
  ['longer than any time', 'Downloading":1e300'],
  ['no number', 'Downloading":1e999'],
  ['longer than the window', `Downloading":${3 * HOUR}`],
  ['another step', 'Dreaming":1e300'],
])('%s', async (_name, spent) => {
  expect(await goesOn(`{"${spent}}`)).toBe(true);
  expect(await goesOn(`{"${spent}}`, [TWO_HOURS])).toBe(true);
});

test('steps that it made up are none, and so become no metrics', () => {
  const spent = Object.fromEntries(Array.from({ length: 10_000 }, (_, step) => [`step${step}`, 1]));
  const annotations = {
    [REPORT_ANNOTATION]: JSON.stringify({ created: ATTEMPT, spent: { ...spent, Restart: 2 } }),
  };
  expect(decodeReport(annotations, ATTEMPT)?.spent).toEqual({ Restart: 2 });
});
