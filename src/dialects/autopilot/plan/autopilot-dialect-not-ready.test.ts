/** Proves what a Plan does when an API server is not ready: it waits, or ends as InconsistentTargets if the policy says so. */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../../../test/support/builders/memory-api.ts';
import { buildControlNode } from '../../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../../test/support/builders/plans.ts';
import { buildReconciler } from '../../../../test/support/builders/reconcilers.ts';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import { later, MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import { plans } from '../../../api/autopilot/plan.ts';
import { annotated } from '../../../kube/resources.ts';
import { decodeSignal, encodeSignal } from '../../../signal/annotations.ts';
import { controlNodes } from '../../../signal/names.ts';
import { autopilot } from './autopilot-dialect.ts';

const WAIT = buildPolicy();
const END = buildPolicy({ endsNotReady: true });
const NAMES = ['c1', 'c2'];

function scene(policy = END) {
  const api = new MemoryApi();
  const update = buildUpdate({ targets: { controllers: listed(...NAMES) } });
  api.put(plans, buildPlan({ commands: [{ k0supdate: update }] }));
  for (const name of NAMES) api.put(controlNodes, buildControlNode(name));
  const clock = new FakeClock(T0);
  const reconcile = async (...down: readonly string[]): Promise<void> => {
    await clock.advance(MINUTE);
    const health = NAMES.map((name) => ({ name, ready: !down.includes(name) }));
    const { catchUp, reconcile: turn } = buildReconciler(autopilot, api, {
      policyFor: () => policy,
      clock,
      prober: { askControlPlane: async () => await Promise.resolve(health) },
    });
    catchUp();
    await turn('autopilot');
  };
  const signalOf = (name: string) =>
    decodeSignal(api.read(controlNodes, name).metadata.annotations);
  const complete = (name: string): void =>
    api.change(controlNodes, name, (seen) => {
      const sent = decodeSignal(seen.metadata.annotations);
      if (!sent) throw new Error(`${name} has no signal`);
      const status = { status: 'Completed', timestamp: later(MINUTE) };
      return annotated(seen, encodeSignal({ ...sent, status }));
    });
  const read = () => api.read(plans, 'autopilot').status;
  return { reconcile, signalOf, complete, read };
}

test('by default the Plan waits until every API server is ready', async () => {
  const { reconcile, signalOf, read } = scene(WAIT);
  await reconcile('c2');
  expect(read()?.state).toBe('Schedulable');
  expect(NAMES.map(signalOf)).toEqual([undefined, undefined]);
  await reconcile();
  expect(signalOf('c1')).toBeDefined();
});

test('if an API server is not ready, a policy can end the new Plan as InconsistentTargets', async () => {
  const { reconcile, signalOf, read } = scene();
  await reconcile('c2');
  expect(read()?.state).toBe('InconsistentTargets');
  expect(read()?.commands[0]?.description).toBe(
    'ControlPlaneNotReady: the API server of c2 (not ready) is not ready',
  );
  await reconcile();
  expect(read()?.state).toBe('InconsistentTargets');
  expect(NAMES.map(signalOf)).toEqual([undefined, undefined]);
});

test('a controller whose upgrade has just ended has time to become ready', async () => {
  const { reconcile, signalOf, complete, read } = scene();
  await reconcile();
  complete('c1');
  await reconcile('c1');
  expect(read()?.state).toBe('SchedulableWait');
  await reconcile();
  complete('c2');
  await reconcile('c1');
  expect(read()?.state).toBe('SchedulableWait');
  await reconcile();
  expect(read()?.state).toBe('Completed');
  expect(NAMES.map((name) => signalOf(name)?.status?.status)).toEqual(['Completed', 'Completed']);
});
