/**
 * Proves that a Plan which includes an excluded node ends as Restricted, as the documentation of k0s says, and signals
 * no node.
 */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../../../test/support/builders/memory-api.ts';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import {
  buildPlan,
  buildUpdate,
  listed,
  selected,
} from '../../../../test/support/builders/plans.ts';
import { buildReconciler } from '../../../../test/support/builders/reconcilers.ts';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import { later, T0 } from '../../../../test/support/clock/times.ts';
import { type K0sUpdate, plans } from '../../../api/autopilot/plan.ts';
import type { Role } from '../../../engine/model/rollout.ts';
import { annotated, nodes } from '../../../kube/resources.ts';
import { encodePresence } from '../../../signal/agent-presence.ts';
import { decodeSignal, encodeSignal } from '../../../signal/annotations.ts';
import { AGENT_ANNOTATION, controlNodes } from '../../../signal/names.ts';
import { autopilot } from './autopilot-dialect.ts';

const EXCLUDED = {
  [AGENT_ANNOTATION]: encodePresence({ version: '1', since: later(0), excluded: true }),
};

function scene(targets: K0sUpdate['targets'], excludedRoles: readonly Role[] = []) {
  const api = new MemoryApi();
  api.put(plans, buildPlan({ commands: [{ k0supdate: buildUpdate({ targets }) }] }));
  api.put(controlNodes, buildControlNode('c1'));
  for (const name of ['w1', 'w2']) api.put(nodes, buildNode(name));
  const reconcile = async (): Promise<void> => {
    const { catchUp, reconcile: turn } = buildReconciler(autopilot, api, {
      policyFor: () => buildPolicy({ excludedRoles }),
      clock: new FakeClock(T0),
    });
    catchUp();
    await turn('autopilot');
  };
  const exclude = (name: string): void =>
    api.change(nodes, name, (seen) => annotated(seen, EXCLUDED));
  const signals = () =>
    ['w1', 'w2'].filter((name) => decodeSignal(api.read(nodes, name).metadata.annotations));
  const read = () => api.read(plans, 'autopilot').status;
  const complete = (name: string): void =>
    api.change(nodes, name, (seen) => {
      const sent = decodeSignal(seen.metadata.annotations);
      if (!sent) throw new Error(`${name} has no signal`);
      const status = { status: 'Completed', timestamp: later(1000) };
      return annotated(seen, encodeSignal({ ...sent, status }));
    });
  return { reconcile, exclude, complete, signals, read };
}

test('a Plan is Restricted if it lists or selects a worker whose agent excludes itself from plans', async () => {
  for (const workers of [listed('w1', 'w2'), selected()]) {
    const { reconcile, exclude, signals, read } = scene({ workers });
    exclude('w2');
    await reconcile();
    await reconcile();
    expect([read()?.state, signals()]).toEqual(['Restricted', []]);
    expect(read()?.commands[0]).toMatchObject({
      description: expect.stringMatching(/^Excluded: w2 is a worker/) as string,
      k0supdate: { workers: [{ state: 'SignalPending' }, { state: 'SignalPending' }] },
    });
  }
});

test.each<[string, K0sUpdate['targets'], Role, string]>([
  ['controllers, and the plan has one', { controllers: listed('c1') }, 'controller', 'Restricted'],
  ['workers, and the plan has one', { workers: listed('w1') }, 'worker', 'Restricted'],
  [
    'controllers, and the plan has none',
    { workers: listed('w1') },
    'controller',
    'SchedulableWait',
  ],
])('a leader that excludes %s', async (_title, targets, role, state) => {
  const { reconcile, read } = scene(targets, [role]);
  await reconcile();
  expect(read()?.state).toBe(state);
});

test('after a worker is excluded, a running Plan ends as Restricted when no node is in progress', async () => {
  const { reconcile, exclude, complete, signals, read } = scene({
    workers: listed('w1', 'w2'),
  });
  await reconcile();
  expect(signals()).toEqual(['w1']);
  exclude('w2');
  await reconcile();
  expect([read()?.state, signals()]).toEqual(['SchedulableWait', ['w1']]);
  complete('w1');
  await reconcile();
  expect([read()?.state, signals()]).toEqual(['Restricted', ['w1']]);
});
