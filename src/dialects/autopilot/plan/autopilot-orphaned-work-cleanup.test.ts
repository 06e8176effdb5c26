/** Proves that the next leader removes what deleted Plans left on nodes, and nothing else. */

import { expect, test } from 'vitest';
import { knowledgeOf } from '../../../../test/support/builders/knowledge.ts';
import { MemoryApi } from '../../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildPlan } from '../../../../test/support/builders/plans.ts';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { recorded, signalled, statusOf } from '../../../../test/support/builders/views.ts';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import { later, T0 } from '../../../../test/support/clock/times.ts';
import { type Plan, plans } from '../../../api/autopilot/plan.ts';
import { CORDON_ANNOTATION, PENDING_TAINT } from '../../../drain/cordon-marks.ts';
import type { Drains } from '../../../drain/running-drains.ts';
import { createReconciler } from '../../../engine/loop.ts';
import { createReporter } from '../../../engine/report/reporter.ts';
import { viewsOf } from '../../../engine/snapshot/world.ts';
import { type Node, nodes } from '../../../kube/resources.ts';
import { noMetrics } from '../../../runtime/metrics.ts';
import { ROLLOUT_ANNOTATION } from '../../../signal/names.ts';
import { silentLogger } from '../../../util/log.ts';
import { autopilot } from './autopilot-dialect.ts';

const OVER = { status: 'Completed', command: { kind: 'airgapupdate' } } as const;

/** Returns a node with the cordon of a plan. A node that is in progress or pending looks like this. */
function cordonedFor(owner: string): Node {
  const node = buildNode('w1', { annotations: { [CORDON_ANNOTATION]: owner } });
  return { ...node, spec: { unschedulable: true } };
}

function taintedFor(owner: string): Node {
  return { ...buildNode('w1'), spec: { taints: [{ ...PENDING_TAINT, value: owner }] } };
}

interface Cared {
  /** The spec of the node after the cleanup. */
  readonly spec: NonNullable<Node['spec']>;
  /** The messages of the Events on the node. */
  readonly told: readonly string[];
}

/** Returns the node and its Events after a new leader has finished its node actions. */
async function afterCare(node: Node, plan?: Plan, drains?: Drains): Promise<Cared> {
  const api = new MemoryApi();
  const told: string[] = [];
  api.put(nodes, node);
  if (plan) api.put(plans, plan);
  const seen = api.view(plans);
  const watched = autopilot.watched.map(({ resource }) => [resource, api.view(resource)] as const);
  const effects = { dialect: autopilot, client: api.client, ...knowledgeOf(viewsOf(watched)) };
  const reconcile = createReconciler({
    ...effects,
    reporter: createReporter({
      ...effects,
      log: silentLogger,
      metrics: noMetrics,
      recordEvent: (object, { type, reason: { code, message } }) => {
        if (object.kind === 'Node') told.push(`${type} ${code}: ${message}`);
      },
    }),
    plans: seen,
    policyFor: () => buildPolicy(),
    clock: new FakeClock(T0),
    drains,
    prober: { askControlPlane: async () => await Promise.resolve([]) },
  });
  // After each pass that wrote something, another pass follows, because the leader receives its own writes in its
  // watch.
  for (let calls = -1; calls < api.calls.length; ) {
    calls = api.calls.length;
    for (const view of [seen, ...watched.map(([, each]) => each)]) view.catchUp();
    await reconcile('autopilot');
  }
  return { spec: api.read(nodes, 'w1').spec ?? {}, told };
}

const finished: Plan = { ...buildPlan(), status: { state: 'Completed', commands: [] } };
const own = finished.metadata.uid ?? '';
const toCome = buildPlan({}, statusOf('SchedulableWait', [], recorded({ w1: 'SignalPending' })));

test.each<[string, Node, Plan | undefined, 'free' | 'kept']>([
  ['a cordon', cordonedFor(`gone/${later(0)}/Plan`), undefined, 'free'],
  [
    'one of a node for itself, whose plan had an id with a slash',
    cordonedFor(`r/1.37/${later(0)}`),
    undefined,
    'free',
  ],
  [
    'the same, where a plan of a shorter id is over',
    cordonedFor(`${finished.spec.id}/1/${later(0)}`),
    finished,
    'free',
  ],
  ['a taint', taintedFor('Plan.gone'), undefined, 'free'],
  ['a taint, where another plan is there', taintedFor('Plan.gone'), finished, 'free'],
  [
    'a cordon of a node whose last signal was of bundles',
    signalled(cordonedFor('gone/1/Plan'), OVER),
    undefined,
    'free',
  ],
  ['a taint of such a node', signalled(taintedFor('Plan.gone'), OVER), undefined, 'free'],
  [
    'a cordon of a plan that is over and finds no such target',
    cordonedFor(`${own}/1/Plan`),
    finished,
    'free',
  ],
  ['and its taint', taintedFor(`Plan.${own}`), finished, 'free'],
  ['what another kind of plan left', cordonedFor(`gone/${later(0)}/ConfigMap`), undefined, 'kept'],
  ['and its taint', taintedFor('ConfigMap.gone'), undefined, 'kept'],
  ['a taint of an earlier version, which names nobody', taintedFor(''), undefined, 'free'],
  ['the same while a plan is over and does not list the node', taintedFor(''), finished, 'free'],
  ['the same, where the node is still to come', taintedFor(''), toCome, 'kept'],
])('%s', async (_name, node, plan, fate) => {
  expect((await afterCare(node, plan)).spec).toEqual(fate === 'kept' ? node.spec : {});
});

test('a controller that is deleted while its Node is drained: the plan fails, the drain ends, and the cordon goes', async () => {
  const running = buildPlan({}, statusOf('SchedulableWait', recorded({ c1: 'SignalSent' }), []));
  const ended: string[] = [];
  const drains: Drains = {
    stateOf: () => ({ kind: 'draining', since: T0, left: 1 }),
    begin: () => undefined,
    forget: async (node) => {
      ended.push(node);
      await Promise.resolve();
    },
    keep: () => undefined,
    onChange: () => () => undefined,
    run: async () => await Promise.resolve(),
  };
  const { spec, told } = await afterCare(
    cordonedFor(`${own}/${later(1000)}/Plan`),
    running,
    drains,
  );
  expect(spec).toEqual({});
  expect(told).toEqual([
    'Normal PlanGone: Uncordoned: its plan is over and no longer lists this node',
  ]);
  expect(ended).toEqual(['w1']);
});

test('an Event on the Node says why it is uncordoned: no plan is left for it', async () => {
  const working = { [ROLLOUT_ANNOTATION]: `gone/${later(1000)}` };
  const node = signalled(cordonedFor(`gone/${later(1000)}/Plan`), { status: 'Cordoning' }, working);
  expect((await afterCare(node)).told).toEqual([
    'Warning PlanGone: its plan was deleted',
    'Normal PlanGone: Uncordoned: its plan was deleted',
  ]);
});

test('after an edit of the id of a plan, a node that had cordoned itself is uncordoned, and no Event says that the plan was deleted', async () => {
  const edited = buildPlan(
    { id: 'edited' },
    statusOf('SchedulableWait', [], recorded({ w1: 'SignalCompleted' })),
  );
  const rollout = { [ROLLOUT_ANNOTATION]: `${own}/${later(1000)}` };
  const signal = { planId: 'id1', created: later(1000), status: 'Failed' };
  const node = signalled(cordonedFor(`id1/${later(1000)}`), signal, rollout);
  const { spec, told } = await afterCare(node, edited);
  expect(spec).toEqual({});
  expect(told).toEqual([
    'Normal PlanGone: Uncordoned: the id of its plan was edited after the node had cordoned itself',
  ]);
});

test('of a taint that is taken away nothing is told', async () => {
  expect((await afterCare(taintedFor('Plan.gone'))).told).toEqual([]);
});
