/** Proves that a Plan gets the claims that it needs, keeps no other claims, and shares one limit with other Plans. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import {
  buildCattleScene,
  LIMITED,
  selecting,
} from '../../../../test/support/builders/cattle-scenes.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildSignal } from '../../../../test/support/builders/signals.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import { because } from '../../../engine/model/reasons.ts';
import type { RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { annotated, type Job, jobs, type Node, nodes } from '../../../kube/resources.ts';
import { withClaim } from '../../../signal/at-work.ts';
import { ATTEMPT_LABEL, SIGNAL_VERSION_ANNOTATION } from '../../../signal/names.ts';
import { NODE_LABEL, PLAN_LABEL } from './names.ts';

const limited = { policyOf: () => LIMITED };
const signalled = (node: Node): Node => annotated(node, { [SIGNAL_VERSION_ANNOTATION]: 'v2' });

test('a node that is recorded without its claim gets it, and then its Job', async () => {
  const { api, made, look, atWork, claims } = buildCattleScene([buildCattlePlan('plan')], ['a']);
  await look();
  expect(claims()).toEqual([]);
  // The node gets a signal for an agent of k0s, and somebody deletes the Job.
  api.change(nodes, 'a', signalled);
  for (const { metadata } of made()) api.remove(jobs, metadata.name);
  expect(atWork()).toEqual([]);
  await look();
  expect([atWork(), claims()]).toEqual([['a'], ['cattle/system-upgrade/plan/plan-uid']]);
});

test('a node at work gets a claim, too, once one is needed', async () => {
  const { api, look, claims } = buildCattleScene([buildCattlePlan('plan')], ['a']);
  await look();
  api.change(nodes, 'a', signalled);
  await look();
  expect(claims()).toHaveLength(1);
});

test('two Plans keep one limit, on nodes without an agent too', async () => {
  const plans = [selecting('first', 'a'), selecting('second', 'b')];
  const { look, atWork, complete, claims } = buildCattleScene(plans, ['a', 'b'], limited);
  for (const name of ['a', 'b']) {
    await look();
    expect(atWork()).toEqual([name]);
    complete(name);
  }
  await look();
  expect([atWork(), claims()]).toEqual([[], []]);
});

test.each(['other/plan-uid', ''])(
  'a claim that names no other plan is replaced: %j',
  async (claim) => {
    const { api, look, atWork } = buildCattleScene([buildCattlePlan('plan')], ['a']);
    api.change(nodes, 'a', (node) => withClaim(signalled(node), claim));
    await look();
    expect(atWork()).toEqual(['a']);
  },
);

test('a claim stays while the Job runs, though its Plan went back to the version before, or is gone', async () => {
  const { api, look, atWork, claims, complete } = buildCattleScene(
    [buildCattlePlan('plan')],
    ['a'],
    limited,
  );
  const ask = (version: string): void =>
    api.change<CattlePlan>(cattlePlans, 'plan', ({ spec: _spec, ...plan }) => ({
      ...buildCattlePlan('plan', { version }),
      ...plan,
    }));
  await look();
  complete('a');
  await look();
  ask('v2');
  await look();
  expect(atWork()).toEqual(['a']);
  ask('v1.2.3');
  await look();
  expect(claims()).toHaveLength(1);
  api.remove(cattlePlans, 'plan');
  await look();
  expect([atWork(), claims().length]).toEqual([['a'], 1]);
  complete('a');
  await look();
  expect(claims()).toEqual([]);
});

test('a Job that no Plan owns neither counts nor keeps a claim', async () => {
  const { api, look, atWork, claims } = buildCattleScene(
    [selecting('plan', 'a')],
    ['a', 'b'],
    limited,
  );
  api.change(nodes, 'b', (node) => withClaim(node, 'cattle/system-upgrade/gone/gone-uid'));
  const labels = { [PLAN_LABEL]: 'any', [NODE_LABEL]: 'b' };
  api.put<Job>(jobs, {
    metadata: { name: 'any', namespace: 'elsewhere', uid: 'any', labels },
    status: { active: 1 },
  });
  await look();
  expect([atWork(), claims()]).toEqual([['a'], ['cattle/system-upgrade/plan/plan-uid']]);
});

test('a later target counts while a plan of k0s has its node', async () => {
  const plan = buildCattlePlan('plan', { concurrency: 2 });
  const policyOf = () => ({ maxUnavailable: { nodes: 2 } });
  const { api, look, made, claims } = buildCattleScene([plan], ['a', 'b', 'c'], { policyOf });
  await look(1);
  expect(claims()).toHaveLength(2);
  // The node `a` is the second in the order of the Plan.
  api.change(nodes, 'a', ({ metadata, ...node }) => ({
    ...node,
    metadata: {
      ...metadata,
      annotations: { ...metadata.annotations, ...buildSignal({}) },
      labels: { [ATTEMPT_LABEL]: 'x' },
    },
  }));
  api.put(nodes, buildNode('c', {}, 'False'));
  await look();
  expect(made()).toEqual([]);
});

test.each<[string, Partial<RolloutPolicy>]>([
  ['its policy cannot be read', { problems: [because('PolicyUnreadable', 'spec.windows')] }],
  ['somebody holds it', { heldBy: 'Cluster c' }],
])('a Plan that %s leaves its node to others', async (_what, change) => {
  let changed: Partial<RolloutPolicy> = {};
  const plans = [selecting('first', 'a'), selecting('second', 'b')];
  const { look, atWork, claims } = buildCattleScene(plans, ['a', 'b'], {
    policyOf: ({ metadata }) => ({ ...LIMITED, ...(metadata.name === 'first' ? changed : {}) }),
  });
  await look(1);
  expect(claims()).toHaveLength(1);
  changed = change;
  await look();
  expect([atWork(), claims()]).toEqual([['b'], ['cattle/system-upgrade/second/second-uid']]);
});

test('a Plan that is not valid any more leaves its node to others', async () => {
  const plans = [selecting('first', 'a'), selecting('second', 'b')];
  const { api, look, atWork, claims } = buildCattleScene(plans, ['a', 'b'], limited);
  await look(1);
  expect(claims()).toHaveLength(1);
  api.change<CattlePlan>(cattlePlans, 'first', ({ spec: _spec, ...plan }) => ({
    ...selecting('first', 'a', { postCompleteDelay: '-30s' }),
    ...plan,
  }));
  await look(20);
  expect([atWork(), claims()]).toEqual([['b'], ['cattle/system-upgrade/second/second-uid']]);
});
