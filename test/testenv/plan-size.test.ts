/**
 * Tests on a real etcd that a Plan without status shards fits into one object. With status shards, the part that
 * remains in the Plan must fit as well.
 */

import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type Plan, plans, type TargetStatus } from '../../src/api/autopilot/plan.ts';
import { statusShards } from '../../src/api/refit/status-shard.ts';
import { shards } from '../../src/dialects/autopilot/plan/status-shards/spread.ts';
import { listsOf } from '../../src/dialects/autopilot/plan/status-shards/target-lists.ts';
import { exceedPlan, mostInFlight } from '../../src/engine/model/status-shards.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { buildPlan, buildUpdate, listed, selected } from '../support/builders/plans.ts';
import { spreadBy } from '../support/builders/whole-records.ts';
import { buildWorldOf } from '../support/builders/worlds-of-kinds.ts';
import { later, T0 } from '../support/clock/times.ts';
import { installKinds, kubeconfigFor } from './control-plane.ts';

/** Annotations of the maximum size: the number of bytes that the API server accepts in all annotations of an object. */
const ANNOTATIONS = { note: 'x'.repeat(2 ** 18 - 'note'.length) };
/** The longest state of a target. */
const LONGEST = 'SignalMissingPlatform';
const NOTHING = buildWorldOf([statusShards, []]);

let admin: KubeClient;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
});

afterEach(async () => await admin.delete(plans, 'autopilot'));
afterAll(() => admin.close());

function namesOf(length: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => String(index).padStart(length, 'w'));
}

/** Returns as many names of this length as fit into a Plan without status shards. */
function mostOf(length: number): string[] {
  let names = namesOf(length, 6_000);
  while (exceedPlan([names.map((name) => ({ name }))])) names = names.slice(0, -1);
  return names;
}

async function createPlan(workers: ReturnType<typeof listed>): Promise<Plan> {
  const { spec, metadata, ...kind } = buildPlan({
    commands: [{ k0supdate: buildUpdate({ targets: { workers } }) }],
  });
  return await admin.create(plans, {
    ...kind,
    spec,
    metadata: { name: metadata.name, annotations: ANNOTATIONS },
  });
}

function recordOf(plan: Plan, workers: TargetStatus[]): Plan {
  const command = { id: 0, state: 'SchedulableWait', k0supdate: { workers } };
  return { ...plan, status: { state: 'SchedulableWait', commands: [command] } };
}

const entry = (name: string, state: string): TargetStatus => ({
  name,
  state,
  lastUpdatedTimestamp: later(0),
});

test.each([[10], [42], [63], [253]])(
  'names of %i characters, each listed in the spec too',
  async (length) => {
    const names = mostOf(length);
    const plan = await createPlan(listed(...names));
    const record = recordOf(
      plan,
      names.map((name) => entry(name, LONGEST)),
    );
    expect(spreadBy(shards, plan, record, NOTHING, T0)).toEqual({ plan: record, writes: [] });
    const stored = await admin.replace(plans, record, { subresource: 'status' });
    expect(listsOf(stored)[1]?.entries).toHaveLength(names.length);
  },
);

test('5,000 targets with the longest names are too large for a Plan, but with status shards the Plan fits', async () => {
  const names = namesOf(253, 5_000);
  const inFlight = mostInFlight(names.map((name) => ({ name })));
  const plan = await createPlan(selected('pool=blue'));
  const record = recordOf(
    plan,
    names.map((name, index) => entry(name, index < inFlight ? 'SignalSent' : 'SignalApplyFailed')),
  );
  await expect(admin.replace(plans, record, { subresource: 'status' })).rejects.toThrow(
    /too large/,
  );
  const { plan: short, writes } = spreadBy(shards, plan, record, NOTHING, T0);
  expect(writes.length).toBeGreaterThan(0);
  const stored = await admin.replace(plans, short, { subresource: 'status' });
  expect(listsOf(stored)[1]?.entries).toHaveLength(inFlight + 1_000);
});

test('of a spec that lists 5,000 names of 249 characters, nodes that are not there have room as far as the spec leaves it', async () => {
  const names = namesOf(249, 5_000);
  const { metadata, ...rest } = buildPlan({
    commands: [{ k0supdate: buildUpdate({ targets: { workers: listed(...names) } }) }],
  });
  const plan = await admin.create(plans, { ...rest, metadata: { name: metadata.name } });
  const record = recordOf(
    plan,
    names.map((name) => entry(name, 'SignalMissingNode')),
  );
  const { plan: short, writes } = spreadBy(shards, plan, record, NOTHING, T0);
  expect(writes).toHaveLength(25);
  const stored = await admin.replace(plans, short, { subresource: 'status' });
  expect(listsOf(stored)[1]?.entries.length).toBeGreaterThan(100);
});
