/** Owns the proof that what deleted Plans left on nodes is taken away by whoever leads next, and nobody else's is. */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../../test/builders/campaign-policies.ts';
import { MemoryApi } from '../../../test/builders/memory-api.ts';
import { buildNode } from '../../../test/builders/nodes.ts';
import { buildPlan } from '../../../test/builders/plans.ts';
import { later, T0 } from '../../../test/builders/times.ts';
import { signalled } from '../../../test/builders/views.ts';
import { FakeClock } from '../../../test/faults/fake-clock.ts';
import { type Plan, plans } from '../../api/autopilot/plan.ts';
import { CORDON_ANNOTATION, PENDING_TAINT } from '../../drain/marks.ts';
import { OwnWrites } from '../../engine/own-writes.ts';
import { createReconciler } from '../../engine/reconciler.ts';
import { viewsOf } from '../../engine/world.ts';
import { nodes } from '../../kube/resources.ts';
import type { Node } from '../../kube/types.ts';
import { autopilot } from './dialect.ts';

const OVER = { status: 'Completed', command: { kind: 'airgapupdate' } } as const;

/** As a plan leaves a node that it is at work on, or that is still to be done. */
function cordonedFor(owner: string): Node {
  const node = buildNode('w1', { annotations: { [CORDON_ANNOTATION]: owner } });
  return { ...node, spec: { unschedulable: true } };
}

function taintedFor(owner: string): Node {
  return { ...buildNode('w1'), spec: { taints: [{ ...PENDING_TAINT, value: owner }] } };
}

/** What is left on the node once a leader that has just come has nothing more to do. */
async function afterCare(node: Node, plan?: Plan): Promise<Node['spec']> {
  const api = new MemoryApi();
  api.put(nodes, node);
  if (plan) api.put(plans, plan);
  const seen = api.view(plans);
  const watched = autopilot.watched.map(({ resource }) => [resource, api.view(resource)] as const);
  const reconcile = createReconciler<Plan>({
    dialect: autopilot,
    client: api.client,
    ownWrites: new OwnWrites(),
    plans: seen,
    views: viewsOf(watched),
    policyFor: () => buildPolicy(),
    clock: new FakeClock(T0),
    inquirer: { askControlPlane: async () => await Promise.resolve([]) },
  });
  for (let isDone = false; !isDone; ) {
    for (const view of [seen, ...watched.map(([, each]) => each)]) view.catchUp();
    isDone = (await reconcile('autopilot')).requeueAfterMs === undefined;
  }
  return api.read(nodes, 'w1').spec;
}

const finished: Plan = { ...buildPlan(), status: { state: 'Completed', commands: [] } };

test.each<[string, Node, Plan | undefined, 'free' | 'kept']>([
  ['a cordon', cordonedFor(`gone/${later(0)}/Plan`), undefined, 'free'],
  ['a taint', taintedFor('Plan.gone'), undefined, 'free'],
  ['a taint, where another plan is there', taintedFor('Plan.gone'), finished, 'free'],
  [
    'a cordon of a node whose last signal was of bundles',
    signalled(cordonedFor('gone/1/Plan'), OVER),
    undefined,
    'free',
  ],
  ['a taint of such a node', signalled(taintedFor('Plan.gone'), OVER), undefined, 'free'],
  ['what another kind of plan left', cordonedFor(`gone/${later(0)}/ConfigMap`), undefined, 'kept'],
  ['and its taint', taintedFor('ConfigMap.gone'), undefined, 'kept'],
])('%s', async (_name, node, plan, fate) => {
  expect((await afterCare(node, plan)) ?? {}).toEqual(fate === 'kept' ? node.spec : {});
});
