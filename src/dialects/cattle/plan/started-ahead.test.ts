/** Proves what a node that is recorded ahead may not do: start beyond the slots, hold a claim, or have a version that is not recorded. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { MemoryApi } from '../../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildReconciler } from '../../../../test/support/builders/reconcilers.ts';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import { later, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { annotated, jobs, nodes } from '../../../kube/resources.ts';
import { claimOn } from '../../../signal/at-work.ts';
import { SIGNAL_VERSION_ANNOTATION } from '../../../signal/names.ts';
import { cattle } from './cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { NODE_LABEL } from './names.ts';
import { recordedNext } from './write-status.ts';

const CONFIG = { name: 'controller', namespace: 'system-upgrade', job: DEFAULT_JOB_SETTINGS };

/** A leader whose new Jobs wait while they are held. */
async function scene(count: number, concurrency: number, annotations = {}) {
  const api = new MemoryApi();
  const clock = new FakeClock(T0);
  const names = Array.from({ length: count }, (_, index) => `n${index + 1}`);
  for (const name of names)
    api.put(
      nodes,
      annotated(buildNode(name, { labels: { 'kubernetes.io/hostname': name } }), annotations),
    );
  const drafted = buildCattlePlan('plan');
  api.put<CattlePlan>(cattlePlans, {
    ...drafted,
    spec: { ...drafted.spec, concurrency } as NonNullable<CattlePlan['spec']>,
  });
  let held = Promise.withResolvers<void>();
  held.resolve();
  const create: KubeClient['create'] = async (...args) => {
    await held.promise;
    return await api.client.create(...args);
  };
  const { catchUp, reconcile } = buildReconciler(cattle(CONFIG), api, {
    client: { ...api.client, create },
    clock,
  });
  const all = api.view(jobs);
  const listed = () => {
    all.catchUp();
    return all.list();
  };
  const look = async (): Promise<void> => {
    catchUp();
    await clock.runUntil(reconcile('plan'));
  };
  for (let looks = 0; looks < 3; looks++) await look();
  await clock.advance(2_000);
  return {
    api,
    clock,
    names,
    catchUp,
    look,
    reconcile: async () => await reconcile('plan'),
    hold: () => void (held = Promise.withResolvers()),
    release: () => held.resolve(),
    atWork: () =>
      listed().flatMap(({ metadata, status }) =>
        status ? [] : (metadata.labels?.[NODE_LABEL] ?? []),
      ),
    next: () => recordedNext(api.read(cattlePlans, 'plan')),
    versions: () =>
      new Set(listed().map(({ metadata }) => metadata.labels?.['upgrade.cattle.io/version'])),
    complete: (name: string | undefined) => {
      const job = listed().find(({ metadata }) => metadata.labels?.[NODE_LABEL] === name);
      const condition = {
        type: 'Complete',
        status: 'True',
        lastTransitionTime: later(clock.monotonic()),
      } as const;
      if (job) api.put(jobs, { ...job, status: { conditions: [condition] } });
      catchUp();
    },
  };
}

test('a node whose Job is being created keeps its place, though it is not Ready any more', async () => {
  const { api, clock, hold, release, atWork, complete, next, look, reconcile, catchUp } =
    await scene(9, 4);
  const [first, second] = atWork();
  hold();
  complete(first);
  const reconciling = reconcile();
  await clock.advance(300);
  const [queued = ''] = next();
  complete(second);
  await clock.advance(110);
  api.put(nodes, {
    ...api.read(nodes, queued),
    status: buildNode(queued, {}, 'False').status ?? {},
  });
  for (let turns = 0; turns < 14; turns++) {
    catchUp();
    await clock.advance(100);
  }
  release();
  await clock.runUntil(reconciling);
  for (let looks = 0; looks < 3; looks++) await look();
  expect(atWork()).toHaveLength(4);
});

test('no node is claimed ahead: plans of other dialects would wait for it after an abort', async () => {
  const { api, atWork, complete, names, look, next, clock } = await scene(7, 3, {
    [SIGNAL_VERSION_ANNOTATION]: 'v2',
  });
  expect(next()).toEqual([]);
  api.change(cattlePlans, 'plan', (plan) =>
    annotated(plan, { 'refit.upgrade.cattle.io/abort': 'true' }),
  );
  for (const name of atWork()) complete(name);
  for (let looks = 0; looks < 4; looks++) {
    await look();
    await clock.advance(2_000);
  }
  expect(names.filter((name) => claimOn(api.read(nodes, name)) !== undefined)).toEqual([]);
});

test('nothing of a new version starts before that is recorded', async () => {
  const { api, clock, hold, release, atWork, complete, reconcile, versions } = await scene(7, 3);
  const [first, second] = atWork();
  const before = versions();
  hold();
  complete(first);
  const reconciling = reconcile();
  await clock.advance(50);
  complete(second);
  api.change<CattlePlan>(cattlePlans, 'plan', (plan) => ({
    ...plan,
    spec: { ...plan.spec, version: 'v9.9.9' } as NonNullable<CattlePlan['spec']>,
  }));
  await clock.advance(150);
  release();
  await clock.advance(0);
  expect(versions()).toEqual(before);
  await clock.runUntil(reconciling);
});
