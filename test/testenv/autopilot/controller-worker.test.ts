/**
 * Tests the k0s scenario ap-controllerworker: controllers that run pods, a budget that allows no eviction, and a
 * process that writes all the time.
 */

import { describe, expect, test } from 'vitest';
import { nodes } from '../../../src/kube/resources.ts';
import { controlNodes } from '../../../src/signal/names.ts';
import { kubernetesPartOf } from '../../../src/versions/release-parts.ts';
import { listed } from '../../support/builders/plans.ts';
import type { Combination } from '../../support/doubles/mixed.ts';
import { forbiddenIn } from '../audit.ts';
import { DrainBlocker } from './drain-blocker.ts';
import { pairsWith, type Scene, targetsIn, uniquePrefix, useScene } from './scene.ts';
import { type History, recordHistory, stageOf } from './signal-history.ts';

/** In agents of k0s before 1.37, a conflict at the wrong moment blocks the update forever. This test causes many conflicts. */
const OLD = 'v1.37.1+k0s.0';
const NEW = 'v1.38.0+k0s.0';
/** The interval between two writes, as in the original's test. */
const REWRITE_MS = 1_000;

describe.each(pairsWith(2))('ap-controllerworker: %s', (_name, combination) => {
  const prefix = uniquePrefix();
  const names = [1, 2, 3].map((index) => `${prefix}controller${index}`);
  const service = { serviceFlags: ['--enable-worker'], played: true, prefix };
  const versions = { version: OLD, offers: [OLD, NEW] };
  const scene = useScene(combination, {
    controllers: names.length,
    workers: 0,
    ...service,
    ...versions,
  });

  test('no node passes Cordoning before the budget is gone, and no status goes back', async () => {
    const at = scene();
    await using blocker = await DrainBlocker.start(at.client, names);
    await using history = await recordHistory(at.client);
    using things = new DisposableStack();
    things.use(rewriteAnnotations(at, names));
    await at.create('controllerworker', at.forced({ controllers: listed(...names) }, NEW));
    await at.until(async () => await expectBlocked(at, history));
    expect(furthest(history)).toBeLessThanOrEqual(stageOf('Cordoning'));
    expect(['Schedulable', 'SchedulableWait']).toContain((await at.plan()).status?.state);

    await blocker.liftBudget();
    expect(targetsIn(await at.ends('Completed'))).toEqual(
      names.map((name) => `${name} SignalCompleted`),
    );
    for (const name of names) {
      expectForwardOnly(history, name);
      expect(await at.host(name).version()).toBe(NEW);
      await at.until(async () => await expectWell(at, name));
    }
    expectLeader(history, combination);
    await blocker.untilEverywhere();
    expect(forbiddenIn(await at.audited('"forbid"'))).toEqual([]);
  });
});

/** Causes conflicts and reconciliations for all processes. */
function rewriteAnnotations({ client }: Scene, names: readonly string[]): Disposable {
  let count = 0;
  const write = (): void => {
    const patch = { metadata: { annotations: { 'example.com/count': String(count++) } } };
    for (const name of names)
      void client.patch(controlNodes, name, patch, { type: 'merge' }).catch(() => undefined);
  };
  const timer = setInterval(write, REWRITE_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Every leader, and every node that drains itself, retries the evictions that the budget refuses. */
async function expectBlocked(at: Scene, { versions }: History): Promise<void> {
  for (const seen of versions.values()) expect(seen.length).toBeGreaterThan(1);
  const evictions = (await at.audited('/eviction')).filter(({ requestURI }) =>
    requestURI.includes('/eviction'),
  );
  expect(
    evictions.filter(({ responseStatus }) => responseStatus?.code === 429).length,
  ).toBeGreaterThan(1);
}

/** Returns the latest stage that any node has reached. */
function furthest({ versions }: History): number {
  return Math.max(...[...versions.values()].flat().map(({ status }) => stageOf(status)));
}

function expectForwardOnly({ versions }: History, name: string): void {
  const own = versions.get(name) ?? [];
  const stages = own.map(({ status }) => stageOf(status));
  expect(stages).toEqual(stages.toSorted((a, b) => a - b));
  expect(Math.min(...stages)).toBeGreaterThanOrEqual(0);
  expect(own.at(-1)?.status).toBe('Completed');
  const times = own
    .map(({ timestamp }) => Date.parse(timestamp))
    .filter((time) => !Number.isNaN(time));
  expect(times).toEqual(times.toSorted((a, b) => a - b));
}

async function expectWell(at: Scene, name: string): Promise<void> {
  const { spec, status } = await at.client.get(nodes, name);
  expect(spec?.unschedulable).toBeUndefined();
  expect(status?.conditions).toContainEqual(
    expect.objectContaining({ type: 'Ready', status: 'True' }),
  );
  expect(status?.nodeInfo?.kubeletVersion).toBe(kubernetesPartOf(NEW));
}

/**
 * Leaders of k0s before 1.35 do not mark the Lease, because every node then drains itself. Later leaders of k0s mark
 * the Lease only after they have acquired it.
 */
function expectLeader({ leaders }: History, { leader }: Combination): void {
  const labels = leaders.map(({ label }) => label);
  const holders = leaders.map(({ holder }) => holder);
  if (leader === '<=1.34') expect(labels).toEqual(labels.map(() => undefined));
  else if (leader === 'refit') expect(labels).toEqual(holders);
  else expect(leaders).toContainEqual({ holder: holders.at(-1), label: holders.at(-1) });
  expect(holders.at(-1)).toMatch(leader === 'refit' ? /_[0-9a-f]{16}$/ : /^[0-9a-f]{32}$/);
}
