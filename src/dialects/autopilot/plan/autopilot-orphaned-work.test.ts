/** Proves what counts as orphaned work of a Plan. */
import { expect, test, vi } from 'vitest';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildPlan } from '../../../../test/support/builders/plans.ts';
import { signalled } from '../../../../test/support/builders/views.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { later } from '../../../../test/support/clock/times.ts';
import type { Plan } from '../../../api/autopilot/plan.ts';
import { CORDON_ANNOTATION, PENDING_TAINT } from '../../../drain/cordon-marks.ts';
import type { KubeObject } from '../../../kube/resources.ts';
import {
  AGENT_POLICY_ANNOTATION,
  MODE_ANNOTATION,
  ROLLOUT_ANNOTATION,
} from '../../../signal/names.ts';
import { nodesAtWork, orphanedPlans } from './autopilot-orphaned-work.ts';

const CREATED = later(0);
/** Returns the object with a signal of a deleted plan. */
function told<T extends KubeObject>(object: T, status: string): T {
  return signalled(
    object,
    { planId: 'gone', created: CREATED, status },
    { [ROLLOUT_ANNOTATION]: `gone-uid/${CREATED}` },
  );
}

function cordoned(name: string, uid = 'gone-uid', kind = '/Plan'): KubeObject {
  const node = buildNode(name, {
    annotations: { [CORDON_ANNOTATION]: `${uid}/${CREATED}${kind}` },
  });
  return { ...node, spec: { unschedulable: true } } as KubeObject;
}

/** Returns a Node with the taint that marks it as pending. */
function tainted(name: string, value: string): KubeObject {
  return { ...buildNode(name), spec: { taints: [{ ...PENDING_TAINT, value }] } } as KubeObject;
}

const both = buildControlNode('c1', { annotations: { [MODE_ANNOTATION]: 'controller+worker' } });
const plan = buildPlan();
const OWN = plan.metadata.uid ?? '';

test.each<
  [string, { controllers?: KubeObject[]; workers?: KubeObject[] }, readonly Plan[], string[]]
>([
  ['nothing is left', { workers: [buildNode('w1')] }, [], []],
  ['a signal that nobody follows', { workers: [told(buildNode('w1'), 'Downloading')] }, [], ['w1']],
  ['one that is over', { workers: [told(buildNode('w1'), 'Completed')] }, [], []],
  ['a cordon', { workers: [cordoned('w1')] }, [], ['w1']],
  ['that of a plan that is there', { workers: [cordoned('w1', OWN)] }, [plan], []],
  ['that of a node that cordoned itself', { workers: [cordoned('w1', 'some-id', '')] }, [], ['w1']],
  [
    'that of one whose plan had an id with a slash',
    { workers: [cordoned('w1', 'release/1.37', '')] },
    [],
    ['w1'],
  ],
  [
    'and of one whose id ends like a kind',
    { workers: [cordoned('w1', 'release/Plan', '')] },
    [],
    ['w1'],
  ],
  [
    'that of a rollout of another kind',
    { workers: [cordoned('w1', 'gone-uid', '/ConfigMap')] },
    [plan],
    [],
  ],
  ['a taint', { workers: [tainted('w1', 'Plan.gone-uid')] }, [], ['w1']],
  [
    'a taint, where another plan took the place of its own',
    { workers: [tainted('w1', 'Plan.gone-uid')] },
    [plan],
    ['w1'],
  ],
  ['that of a plan that is there', { workers: [tainted('w1', `Plan.${OWN}`)] }, [plan], []],
  ['that of a rollout of another kind', { workers: [tainted('w1', 'ConfigMap.gone-uid')] }, [], []],
  ['a controller at work', { controllers: [told(both, 'Restart')] }, [], ['c1']],
  [
    'the cordon of its Node goes with its own end, not in the middle of it',
    { controllers: [told(both, 'Restart')], workers: [cordoned('c1')] },
    [],
    ['c1 controller'],
  ],
  [
    'and after that end with what is left',
    { controllers: [told(both, 'Failed')], workers: [cordoned('c1')] },
    [],
    ['c1'],
  ],
])('%s', (_name, { controllers = [], workers = [] }, plans, names) => {
  const found = orphanedPlans(buildWorld(controllers, workers), plans).flatMap(({ rollout }) =>
    rollout.stages.flatMap(({ role, targets }) => targets.map(({ name }) => `${name} ${role}`)),
  );
  const wanted = names.map((name) => expect.stringContaining(name) as string);
  expect(found).toEqual(wanted);
});

test('what a finished plan lists is not read for each of thousands of nodes, which it left nothing on', () => {
  const workers = Array.from({ length: 10 }, (_, index) =>
    told(buildNode(`w${index}`), 'Completed'),
  );
  const read = vi.fn<() => Plan['status']>(() => ({ state: 'Completed', commands: [] }));
  const finished = Object.defineProperty(buildPlan(), 'status', { get: read });
  expect(orphanedPlans(buildWorld([], workers), [finished])).toEqual([]);
  expect(read).not.toHaveBeenCalled();
});

test('a signal of another dialect is no work of k0s; what is left of an earlier one hides no later signal', () => {
  const policy = { [AGENT_POLICY_ANNOTATION]: '{"cordoning":"leader"}' };
  const other = told(buildNode('w1', { annotations: policy }), 'Restart');
  const earlier = { annotations: { ...policy, [ROLLOUT_ANNOTATION]: `other/${later(-1000)}` } };
  // The leader of k0s writes its signal without an annotation of Refit.
  const own = signalled(buildNode('w2', earlier), { created: CREATED, status: 'Restart' });
  expect(nodesAtWork(buildWorld([], [other, own]))).toEqual([{ role: 'worker', name: 'w2' }]);
});
