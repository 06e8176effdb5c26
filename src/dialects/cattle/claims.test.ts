/** Proves that a Plan gets the claims it needs, holds no more than that, and keeps one limit with other Plans. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../test/builders/cattle-plans.ts';
import { MemoryApi } from '../../../test/builders/memory-api.ts';
import { buildNode } from '../../../test/builders/nodes.ts';
import { buildReconciler } from '../../../test/builders/reconcilers.ts';
import { buildPolicy } from '../../../test/builders/rollout-policies.ts';
import { later, T0 } from '../../../test/builders/times.ts';
import { FakeClock } from '../../../test/faults/fake-clock.ts';
import type { CattlePlan } from '../../api/cattle/plan.ts';
import { cattlePlans } from '../../api/kinds.ts';
import type { RolloutPolicy } from '../../engine/policy/rollout-policy.ts';
import { annotated, type Job, jobs, type KubeObject, nodes } from '../../kube/resources.ts';
import { claimOn, withClaim } from '../../signal/at-work.ts';
import { SIGNAL_VERSION_ANNOTATION } from '../../signal/names.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { cattle } from './dialect.ts';
import { NODE_LABEL } from './names.ts';

const CONFIG = { name: 'controller', namespace: 'system-upgrade', job: DEFAULT_JOB_SETTINGS };

/** One controller for all Plans. */
function scene(
  plans: readonly CattlePlan[],
  names: readonly string[],
  policy: Partial<RolloutPolicy> = {},
  isLimited = (_plan: KubeObject): boolean => true,
) {
  const api = new MemoryApi();
  const clock = new FakeClock(T0);
  for (const name of names) api.put(nodes, buildNode(name, { labels: { 'kubernetes.io/hostname': name } }));
  for (const plan of plans) api.put(cattlePlans, plan);
  const policyFor = (plan: KubeObject): RolloutPolicy => buildPolicy(isLimited(plan) ? policy : {});
  const { catchUp, reconcile } = buildReconciler(cattle(CONFIG), api, { clock, policyFor });
  const view = api.view(jobs);
  const made = (): readonly Job[] => {
    view.catchUp();
    return view.list();
  };
  return {
    api,
    made,
    /** Every Plan has its turn so many times. */
    look: async (times = 4): Promise<void> => {
      for (let turn = 0; turn < times; turn++) {
        for (const { metadata } of plans) {
          catchUp();
          await clock.runUntil(reconcile(`${metadata.namespace}/${metadata.name}`));
        }
        await clock.advance(1_000);
      }
    },
    atWork: () => made().flatMap(({ metadata, status }) => (status ? [] : (metadata.labels?.[NODE_LABEL] ?? []))),
    claims: () => names.flatMap((name) => claimOn(api.read(nodes, name)) ?? []),
    complete: (name: string): void => {
      const condition = { type: 'Complete', status: 'True', lastTransitionTime: later(clock.monotonic()) } as const;
      for (const job of made())
        if (job.metadata.labels?.[NODE_LABEL] === name) api.put(jobs, { ...job, status: { conditions: [condition] } });
    },
  };
}

const signalled = <T extends object>(node: T): T =>
  annotated(node as never, { [SIGNAL_VERSION_ANNOTATION]: 'v2' }) as T;
const LIMITED = { maxUnavailable: { nodes: 1 } };

test('a node that is recorded without its claim gets it, and then its Job', async () => {
  const { api, made, look, atWork, claims } = scene([buildCattlePlan('plan')], ['a']);
  await look();
  expect(claims()).toEqual([]);
  // An agent of k0s is installed, and somebody deletes the Job.
  api.change(nodes, 'a', signalled);
  for (const { metadata } of made()) api.remove(jobs, metadata.name);
  expect(atWork()).toEqual([]);
  await look();
  expect([atWork(), claims()]).toEqual([['a'], ['cattle/system-upgrade/plan/plan-uid']]);
});

test('a node at work gets a claim, too, once one is needed', async () => {
  const { api, look, claims } = scene([buildCattlePlan('plan')], ['a']);
  await look();
  api.change(nodes, 'a', signalled);
  await look();
  expect(claims()).toHaveLength(1);
});

const selecting = (name: string, node: string): CattlePlan =>
  buildCattlePlan(name, { nodeSelector: { matchLabels: { 'kubernetes.io/hostname': node } } });

test('two Plans keep one limit, on nodes without an agent too', async () => {
  const plans = [selecting('first', 'a'), selecting('second', 'b')];
  const { look, atWork, complete, claims } = scene(plans, ['a', 'b'], LIMITED);
  for (const name of ['a', 'b']) {
    await look();
    expect(atWork()).toEqual([name]);
    complete(name);
  }
  await look();
  expect([atWork(), claims()]).toEqual([[], []]);
});

test('a Job of a Plan that no policy limits counts, too', async () => {
  const plans = [selecting('free', 'a'), selecting('limited', 'b')];
  const { look, atWork, complete } = scene(plans, ['a', 'b'], LIMITED, ({ metadata }) => metadata.name === 'limited');
  await look();
  expect(atWork()).toEqual(['a']);
  complete('a');
  await look();
  expect(atWork()).toEqual(['b']);
});

test('what is recorded ahead waits for its claim', async () => {
  const names = Array.from({ length: 9 }, (_, index) => `n${index}`);
  const plan = buildCattlePlan('plan', { concurrency: 4 });
  const { look, atWork, claims, complete, made } = scene([plan], names, { maxUnavailable: { nodes: 4 } });
  for (let turn = 0; turn < 40; turn++) {
    await look(1);
    expect(claims().length).toBeGreaterThanOrEqual(atWork().length);
    const [first] = atWork();
    if (first !== undefined) complete(first);
  }
  expect([made().length, claims()]).toEqual([9, []]);
});

test.each(['other/plan-uid', ''])('a claim that names no other plan is replaced: %j', async (claim) => {
  const { api, look, atWork } = scene([buildCattlePlan('plan')], ['a']);
  api.change(nodes, 'a', (node) => withClaim(signalled(node), claim));
  await look();
  expect(atWork()).toEqual(['a']);
});

test('a claim stays while the Job runs, though its Plan went back to the version before, or is gone', async () => {
  const { api, look, atWork, claims, complete } = scene([buildCattlePlan('plan')], ['a'], LIMITED);
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
