/** Tests when a controller process works without UpgradePolicies, and what its options add to the policies. */
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { refusal } from '../../test/support/builders/memory-api.ts';
import { buildUpgradePolicy } from '../../test/support/builders/policies.ts';
import { buildTablePlan, tableDialect } from '../../test/support/builders/table-dialect.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { upgradePolicies } from '../api/kinds.ts';
import type { RolloutPolicy } from '../engine/policy/rollout-policy.ts';
import type { KubeClient } from '../kube/client.ts';
import { listen } from '../util/listen.ts';
import { silentLogger } from '../util/log.ts';
import { aborted } from '../util/waits.ts';
import { prepareControllerProcess } from './controller-process.ts';

const CONFIG = { server: 'https://127.0.0.1:6443', user: {}, namespace: '', files: [] } as const;

/** Returns what the process requested, and its warnings. */
async function prepared(
  isRefused: (kind: string, asked: number) => boolean,
): Promise<{ asked: string[]; warnings: string[] }> {
  const clock = new FakeClock();
  const warnings: string[] = [];
  const asked: string[] = [];
  const list = async ({ kind }: { readonly kind: string }): Promise<object> => {
    asked.push(kind);
    if (isRefused(kind, asked.length)) throw refusal(403, 'Forbidden');
    return await Promise.resolve({ items: [] });
  };
  const client = { list } as unknown as KubeClient;
  const log = {
    ...silentLogger,
    warn: (words: string) => void warnings.push(words.split(':')[0] ?? ''),
  };
  const dialects = [{ ...tableDialect, watched: [] }];
  const options = {
    component: 'test',
    config: CONFIG,
    client,
    dialects,
    policyEffects: {},
    log,
    clock,
    policies: 'if-allowed',
  } as const;
  await clock.runUntil(prepareControllerProcess(options, new AbortController().signal));
  return { asked, warnings };
}

const PLANS = tableDialect.plans.kind;

test('policies apply although an API server that has just started refuses everything', async () => {
  const { asked, warnings } = await prepared((_, count) => count < 4);
  expect({ asked, warnings }).toEqual({
    asked: [PLANS, PLANS, PLANS, PLANS, upgradePolicies.kind],
    warnings: [],
  });
});

test('a process that may read plans, but no policies, waits for nothing', async () => {
  const { asked, warnings } = await prepared((kind) => kind === upgradePolicies.kind);
  expect({ asked, warnings }).toEqual({
    asked: [PLANS, upgradePolicies.kind],
    warnings: ['cannot read UpgradePolicies'],
  });
});

test('a process that may not read plans says so', async () => {
  await expect(prepared((kind) => kind === PLANS)).rejects.toThrow('Forbidden');
});

test('an address that is taken ends the process, and says so', async () => {
  const taken = createServer();
  const address = `127.0.0.1:${(await listen(taken, '127.0.0.1:0')).port}`;
  onTestFinished(() => void taken.close());
  const stop = new AbortController();
  const list = async (): Promise<object> => await Promise.resolve({ items: [] });
  const watch = async function* (_: unknown, { abort }: { abort: AbortSignal }): AsyncGenerator {
    await aborted(abort);
    yield* [];
  };
  const client = { list, watch } as unknown as KubeClient;
  const options = {
    component: 'test',
    config: CONFIG,
    client,
    dialects: [],
    policyEffects: {},
    log: silentLogger,
    healthAddress: address,
  };
  const running = await prepareControllerProcess(options, stop.signal);
  await expect(running.run(stop.signal)).rejects.toThrow(
    `cannot listen at ${address}: listen EADDRINUSE`,
  );
});

test('the roles that the options exclude are in every policy, which stays the same object', async () => {
  const { signal } = new AbortController();
  const list = async (): Promise<object> => await Promise.resolve({ items: [] });
  const running = await prepareControllerProcess(
    {
      component: 'test',
      config: CONFIG,
      client: { list } as unknown as KubeClient,
      dialects: [],
      policyEffects: {},
      log: silentLogger,
      excludedRoles: ['worker'],
    },
    signal,
  );
  const policy = running.policyFor(tableDialect, buildTablePlan({}));
  expect(policy.excludedRoles).toEqual(['worker']);
  expect(running.policyFor(tableDialect, buildTablePlan({}))).toBe(policy);
});

test('policies that can be read only later apply from then on', async () => {
  const clock = new FakeClock();
  const stop = new AbortController();
  const calm = buildUpgradePolicy('calm');
  let isAllowed = false;
  const list = async (): Promise<object> => {
    if (!isAllowed) throw refusal(404, 'NotFound');
    return await Promise.resolve({});
  };
  const annotations = { 'k8s.io/initial-events-end': 'true' };
  const watch = async function* (): AsyncGenerator {
    yield { type: 'ADDED', object: calm };
    yield { type: 'BOOKMARK', object: { metadata: { annotations, resourceVersion: '1' } } };
    await aborted(stop.signal);
  };
  const client = { list, watch } as unknown as KubeClient;
  const log = silentLogger;
  const options = {
    component: 'test',
    config: CONFIG,
    client,
    dialects: [],
    policyEffects: {},
    log,
    clock,
    policies: 'if-installed',
  } as const;
  const running = await prepareControllerProcess(options, stop.signal);
  const end = running.run(stop.signal);
  const policy = (): RolloutPolicy => running.policyFor(tableDialect, buildTablePlan({}));
  await clock.advance(300_000);
  expect(policy().name).toBeUndefined();
  isAllowed = true;
  await clock.advance(120_000);
  await expect.poll(() => policy().name).toBe('calm');
  stop.abort();
  await clock.runUntil(end);
});
