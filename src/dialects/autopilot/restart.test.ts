/** Proves that an edit of an ended Plan starts exactly one new rollout where the policy says so, and none without. */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../../test/builders/memory-api.ts';
import { buildNode } from '../../../test/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/builders/plans.ts';
import { buildReconciler } from '../../../test/builders/reconcilers.ts';
import { buildPolicy } from '../../../test/builders/rollout-policies.ts';
import { buildSignal } from '../../../test/builders/signals.ts';
import { HOUR, later, T0 } from '../../../test/builders/times.ts';
import { recorded, statusOf } from '../../../test/builders/views.ts';
import { FakeClock } from '../../../test/faults/fake-clock.ts';
import { type Plan, plans } from '../../api/autopilot/plan.ts';
import { ABORT_ANNOTATION } from '../../engine/model/controls.ts';
import { RESTART_ANNOTATION } from '../../engine/model/runs.ts';
import { annotated, nodes } from '../../kube/resources.ts';
import { decodeSignal } from '../../signal/annotations.ts';
import { ROLLOUT_ANNOTATION } from '../../signal/names.ts';
import { autopilot } from './dialect.ts';

const NEWER = 'v1.36.4+k0s.0';
const RESTART = buildPolicy({ restartsEdited: true });
const update = buildUpdate({ targets: { workers: listed('w1') } });

/** Its one worker was upgraded by a leader of Refit; then its version was edited. */
function editedPlan(): Plan {
  const status = statusOf('Completed', [], recorded({ w1: 'SignalCompleted' }));
  const plan = buildPlan({ commands: [{ k0supdate: { ...update, version: NEWER } }] }, status);
  return { ...plan, metadata: { ...plan.metadata, generation: 2 } };
}

const signalOfFirstRun = {
  ...buildSignal({ status: 'Completed', timestamp: later(29_000) }),
  [ROLLOUT_ANNOTATION]: `plan-uid/${later(1000)}`,
};

function scene(plan = editedPlan(), policy = RESTART) {
  const api = new MemoryApi();
  api.put(plans, plan);
  api.put(nodes, buildNode('w1', { annotations: signalOfFirstRun }));
  const leader = () => {
    const { catchUp, reconcile } = buildReconciler(autopilot, api, {
      policyFor: () => policy,
      clock: new FakeClock(T0 + HOUR),
    });
    return async (): Promise<unknown> => {
      catchUp();
      return await reconcile('autopilot').catch((error: unknown) => error);
    };
  };
  const signal = () => decodeSignal(api.read(nodes, 'w1').metadata.annotations);
  const state = () => api.read(plans, 'autopilot').status?.state;
  return { api, leader, signal, state };
}

test('an edit starts a new rollout, and its signal is not that of the first', async () => {
  const { leader, signal, state } = scene();
  await leader()();
  expect(signal()).toMatchObject({ planId: 'id1-g2', command: { version: NEWER } });
  expect(signal()?.status).toBeUndefined();
  expect(state()).toBe('SchedulableWait');
});

test('by default it starts nothing, as in the original', async () => {
  const { api, leader, state } = scene(editedPlan(), buildPolicy());
  await leader()();
  expect(state()).toBe('Completed');
  expect(api.calls.filter((call) => call.startsWith('replace'))).toEqual([]);
});

test('an abort holds', async () => {
  const { leader, state } = scene(annotated(editedPlan(), { [ABORT_ANNOTATION]: 'stop' }));
  await leader()();
  expect(state()).toBe('Completed');
});

const WRITES = [0, 1, 2, 3, 4];

test.each(WRITES)('a leader that dies before its write %i: the next one goes on', async (index) => {
  const { api, leader, signal, state } = scene();
  let left = index;
  const die = (): void => {
    if (left-- > 0) api.before('replace', die);
    else throw new Error('this leader is gone');
  };
  api.before('replace', die);
  await leader()();
  await leader()();
  expect([signal()?.planId, state()]).toEqual(['id1-g2', 'SchedulableWait']);
});

test('the same edit starts nothing a second time, even if it is refused at once both times', async () => {
  const refusal = 'spec.commands[0].k0supdate.version: "1.36" is not a version; use something';
  const plan = editedPlan();
  const commands = [{ k0supdate: { ...update, version: '1.37' } }];
  const wrong = {
    ...plan,
    spec: { ...plan.spec, commands },
    status: statusOf('Warning', [], [], refusal),
  };
  const { api, leader, state } = scene(wrong);
  const look = leader();
  await look();
  expect(state()).toBe('Warning');
  const written = api.calls.filter((call) => call.startsWith('replace')).length;
  await look();
  await leader()();
  expect(api.calls.filter((call) => call.startsWith('replace'))).toHaveLength(written);
  api.change(plans, 'autopilot', (seen) => ({
    ...seen,
    metadata: { ...seen.metadata, generation: 3 },
    spec: { ...seen.spec, commands: [{ k0supdate: { ...update, version: NEWER } }] },
  }));
  await leader()();
  expect(api.read(plans, 'autopilot').metadata.annotations?.[RESTART_ANNOTATION]).toBe(
    '{"generation":3}',
  );
  expect(state()).toBe('SchedulableWait');
});

test('two leaders at once start it once', async () => {
  const { api, leader, signal, state } = scene();
  const [first, second] = [leader(), leader()];
  await Promise.all([first(), second()]);
  await Promise.all([first(), second()]);
  const clears = api.calls.filter((call) => call === 'replace plans/autopilot/status');
  expect([signal()?.planId, state()]).toEqual(['id1-g2', 'SchedulableWait']);
  expect(api.read(plans, 'autopilot').metadata.annotations?.[RESTART_ANNOTATION]).toBe(
    '{"generation":2}',
  );
  expect(clears.length).toBeGreaterThan(0);
});
