/** Proves that a node gets one signal for an attempt, even if k0s's own leader sent it and the id of the Plan was edited. */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../../../test/support/builders/memory-api.ts';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../../test/support/builders/plans.ts';
import { buildReconciler } from '../../../../test/support/builders/reconcilers.ts';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { buildSignal, type OriginalSignal } from '../../../../test/support/builders/signals.ts';
import { recorded, statusOf } from '../../../../test/support/builders/views.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import { later, MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import { type Plan, plans } from '../../../api/autopilot/plan.ts';
import { withStages } from '../../../engine/model/rollout.ts';
import { RUN_ANNOTATION, withRunId } from '../../../engine/model/runs.ts';
import { gather } from '../../../engine/snapshot/gather.ts';
import { annotated, nodes } from '../../../kube/resources.ts';
import { decodeSignal, encodeSignal } from '../../../signal/annotations.ts';
import { controlNodes } from '../../../signal/names.ts';
import { autopilot } from './autopilot-dialect.ts';
import { orphanedPlans } from './autopilot-orphaned-work.ts';
import { foreignWork } from './autopilot-signal.ts';
import { resolve } from './rollout.ts';

/** When k0s's own leader sends a signal, and when it records the attempt a moment later. */
const SENT = later(1000);
const RECORDED = later(2000);
const NOW = T0 + MINUTE;

/** Returns a Plan with an edited id that k0s's own leader carried out, and whose target has the state. */
function editedPlan(state: string, since = RECORDED, generation = 2): Plan {
  const targets = { controllers: listed('c1'), workers: listed('w1') };
  const status = statusOf(
    'SchedulableWait',
    recorded({ c1: state }, since),
    recorded({ w1: state }, since),
  );
  const plan = buildPlan(
    { id: 'edited', commands: [{ k0supdate: buildUpdate({ targets }) }] },
    status,
  );
  return { ...plan, metadata: { ...plan.metadata, generation } };
}

/** Returns the objects of a controller and a worker, each with a signal of k0s's own leader under the first id. */
function nodesWith(signal: OriginalSignal) {
  const annotations = buildSignal({ created: SENT, planId: 'id1', ...signal });
  return {
    controller: buildControlNode('c1', { annotations }),
    worker: buildNode('w1', { annotations }),
  };
}

/** Returns how the stages of the Plan see the signals, in the order controller, worker. */
function seen(plan: Plan, signal: OriginalSignal): string[] {
  const { controller, worker } = nodesWith(signal);
  const world = buildWorld([controller], [worker]);
  const rollout = resolve(plan, world, NOW);
  return rollout.stages.flatMap((stage) =>
    stage.targets.map((target) => autopilot.signal.read(world, rollout, stage, target, plan).kind),
  );
}

test.each([
  ['SignalSent', 'Restart', 'working'],
  ['SignalSent', 'Completed', 'succeeded'],
  ['SignalSent', 'Failed', 'failed'],
  ['SignalSent', undefined, 'sent'],
  ['SignalCompleted', 'Completed', 'succeeded'],
  ['SignalApplyFailed', 'RollingBack', 'working'],
])(
  'a target in the state %s whose signal has the status %s keeps its signal after an edit of the id',
  (state, status, kind) => {
    expect(seen(editedPlan(state), status === undefined ? {} : { status })).toEqual([kind, kind]);
  },
);

test.each([
  ['still works', 'Restart', 'v1.36.3+k0s.2'],
  ['has succeeded', 'Completed', 'v1.36.3+k0s.2'],
  ['has failed, so it is that of an earlier attempt', 'Failed', undefined],
])(
  'the version of a signal that is older than its record is known if the node %s',
  (_title, status, version) => {
    const plan = editedPlan('SignalSent');
    const { controller, worker } = nodesWith({ status });
    const { rollout, targets } = gather(autopilot, plan, buildWorld([controller], [worker]), NOW);
    const asked = withStages(rollout).map(({ target }) => targets.get(target.key)?.asked);
    expect(asked).toEqual([version, version]);
  },
);

test('a pending target keeps a signal that is newer than its record', () => {
  expect(seen(editedPlan('SignalPending', later(0)), {})).toEqual(['sent', 'sent']);
});

test.each<[string, Plan, OriginalSignal]>([
  ['is older than a retry of its target', editedPlan('SignalPending'), { status: 'Failed' }],
  ['is older than the Plan', editedPlan('SignalSent'), { created: later(-1000) }],
  ['has no readable time', editedPlan('SignalSent'), { created: 'soon' }],
  ['belongs to another command', editedPlan('SignalSent'), { command: { id: 1 } }],
  [
    'was sent by a leader with a fast clock for a Plan that this Plan replaced',
    editedPlan('SignalSent', RECORDED, 1),
    {},
  ],
])('a signal with another id does not count if it %s', (_title, plan, signal) => {
  expect(seen(plan, signal)).toEqual(['none', 'none']);
});

test('after an edit of the id, a signal of the Plan itself is neither foreign nor orphaned work', () => {
  const plan = editedPlan('SignalSent');
  const { controller, worker } = nodesWith({ status: 'Downloading' });
  const world = buildWorld([controller], [worker]);
  const rollout = resolve(plan, world, NOW);
  expect(foreignWork.list(world, rollout)).toEqual([]);
  expect(foreignWork.unproven(world, rollout)).toEqual([]);
  expect(orphanedPlans(world, [plan])).toEqual([]);
});

test.each([
  ['c1', { controllers: listed('c1'), workers: listed() }],
  ['w1', { controllers: listed(), workers: listed('w1') }],
])(
  'a leader that takes over a Plan with an edited id sends no second signal to %s',
  async (name, targets) => {
    const api = new MemoryApi();
    const states = recorded({ [name]: 'SignalSent' }, RECORDED);
    const isController = name === 'c1';
    const status = statusOf(
      'SchedulableWait',
      isController ? states : [],
      isController ? [] : states,
    );
    const spec = { ...editedPlan('').spec, commands: [{ k0supdate: buildUpdate({ targets }) }] };
    api.put(plans, { ...editedPlan(''), spec, status });
    const { controller, worker } = nodesWith({ status: 'Restart' });
    const resource = isController ? controlNodes : nodes;
    api.put(resource, isController ? controller : worker);
    const leader = buildReconciler(autopilot, api, { clock: new FakeClock(NOW) });
    for (let turn = 0; turn < 3; turn++) {
      leader.catchUp();
      await leader.reconcile('autopilot');
    }
    expect(decodeSignal(api.read(resource, name).metadata.annotations)).toMatchObject({
      planId: 'id1',
      created: SENT,
      status: { status: 'Restart' },
    });
  },
);

test.each([
  ['follows', {}],
  ['ignores', { ignoresEdits: true }],
])('a run keeps its id after an edit of the id, if the policy %s edits', async (_title, policy) => {
  const api = new MemoryApi();
  const update = buildUpdate({ targets: { workers: listed('w1', 'w2') } });
  const first = buildPlan({ commands: [{ k0supdate: update }] });
  api.put(plans, { ...first, metadata: { ...first.metadata, generation: 1 } });
  for (const name of ['w1', 'w2']) api.put(nodes, buildNode(name));
  const settings = { clock: new FakeClock(NOW), policyFor: () => buildPolicy(policy) };
  const reconcile = async (): Promise<void> => {
    const leader = buildReconciler(autopilot, api, settings);
    leader.catchUp();
    await leader.reconcile('autopilot');
  };
  const complete = (name: string): void =>
    api.change(nodes, name, (seen) => {
      const sent = decodeSignal(seen.metadata.annotations);
      if (!sent) throw new Error(`${name} has no signal`);
      const status = { status: 'Completed', timestamp: later(MINUTE) };
      return annotated(seen, encodeSignal({ ...sent, status }));
    });
  await reconcile();
  api.change(plans, 'autopilot', (seen) => ({
    ...withRunId(seen, { id: 'id1' }),
    metadata: { ...withRunId(seen, { id: 'id1' }).metadata, generation: 2 },
    spec: { ...seen.spec, id: 'id2' },
  }));
  complete('w1');
  await reconcile();
  expect(decodeSignal(api.read(nodes, 'w2').metadata.annotations)?.planId).toBe('id1');
  const { metadata, ...plan } = api.read(plans, 'autopilot');
  const { annotations: _, ...others } = metadata;
  // The record has the id, too, because a tool may replace all annotations together with the id.
  expect(resolve({ ...plan, metadata: others }, buildWorld([], []), NOW)).toMatchObject({
    id: 'id1',
    editedId: 'id2',
  });
  complete('w2');
  await reconcile();
  const ended = api.read(plans, 'autopilot');
  expect(ended.status?.state).toBe('Completed');
  expect(resolve(ended, buildWorld([], []), NOW)).toMatchObject({ id: 'id1', editedId: 'id2' });
});

test.each([
  ['another Plan', { uid: 'other', id: 'id0' }],
  ['another run', { uid: 'uid', run: 3, id: 'id0' }],
  ['nothing', { uid: 'uid', id: '' }],
])('an annotation that names the run of %s gives a run no id', (_title, named) => {
  const plan = editedPlan('SignalSent');
  const uid = plan.metadata.uid ?? '';
  const text = JSON.stringify({ ...named, uid: named.uid === 'uid' ? uid : named.uid });
  const annotatedPlan = annotated(plan, { [RUN_ANNOTATION]: text });
  expect(resolve(annotatedPlan, buildWorld([], []), NOW).id).toBe('edited');
});
