/**
 * Shows that a plan that is too large for one object is shown like any other plan, and that missing status shards are
 * reported.
 */
import { expect, onTestFinished, test } from 'vitest';
import { startApiServer } from '../../../sandbox/api-server/api-server.ts';
import { installDefinitions } from '../../../sandbox/cluster/objects.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildViewParts } from '../../../test/support/builders/views.ts';
import { wholeRecordOf } from '../../../test/support/builders/whole-records.ts';
import { buildWorldOf } from '../../../test/support/builders/worlds-of-kinds.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import type { Plan, TargetStatus } from '../../api/autopilot/plan.ts';
import { type StatusShard, statusShardKind, statusShards } from '../../api/refit/status-shard.ts';
import { autopilot } from '../../dialects/autopilot/plan/autopilot-dialect.ts';
import { customResourceDefinitions, nodes } from '../../kube/resources.ts';
import { clientOver } from '../../kube/transport/http-client.ts';
import { controlNodes } from '../../signal/names.ts';
import { systemClock } from '../../util/clock.ts';
import type { ShownPlan } from './json-form.ts';
import { loadOnce } from './load.ts';
import { observe } from './observe.ts';

const NAMES = Array.from({ length: 5_001 }, (_, index) => `w${index}`);

/** A record in which the first target is done, the second is in progress, and all others wait. */
function recordedPlan(): { plan: Plan; shards: StatusShard[] } {
  const workers = NAMES.map((name, index): TargetStatus => {
    const state = ['SignalCompleted', 'SignalSent'][index] ?? 'SignalPending';
    return { name, state, lastUpdatedTimestamp: later(0) };
  });
  const update = buildUpdate({ targets: { workers: listed(...NAMES) } });
  const plan = buildPlan({ commands: [{ k0supdate: update }] });
  const command = { id: 0, state: 'SchedulableWait', k0supdate: { workers } };
  const record = { ...plan, status: { state: 'SchedulableWait', commands: [command] } };
  const spread = autopilot.sharding?.spread(
    plan,
    wholeRecordOf(record),
    buildWorldOf([statusShards, []]),
    T0,
  );
  const writes = spread?.writes ?? [];
  return {
    plan: spread?.plan ?? plan,
    shards: writes.flatMap((write) =>
      write.kind === 'begin' ? [] : [write.object as StatusShard],
    ),
  };
}

async function look(plan: Plan, shards: readonly StatusShard[]): Promise<ShownPlan | undefined> {
  const workers = NAMES.map((name) => buildNode(name));
  const world = buildWorldOf([controlNodes, []], [nodes, workers], [statusShards, shards]);
  const [view] = await observe(
    { dialect: autopilot, plans: () => [plan], world },
    buildViewParts(),
    T0,
  );
  return view;
}

test('every target is shown as it is, wherever it stands', async () => {
  const { plan, shards } = recordedPlan();
  const view = await look(plan, shards);
  const targets = view?.stages[1]?.targets ?? [];
  expect(targets).toHaveLength(NAMES.length);
  expect(targets.slice(0, 3).map(({ name, phase }) => [name, phase])).toEqual([
    ['w0', 'done'],
    ['w1', 'intended'],
    ['w2', 'pending'],
  ]);
  expect(view?.reason).toBeUndefined();
});

test('where a status shard is gone the plan waits, and names it', async () => {
  const { plan, shards } = recordedPlan();
  const view = await look(plan, shards.slice(1));
  const name = shards[0]?.metadata.name;
  expect(view?.waits.map(({ reason }) => reason)).toContainEqual({
    code: 'RecordUnread',
    message: `StatusShard ${name} is missing, so the state of its targets is unknown`,
  });
});

test('a cluster that does not know status shards at all can be looked at', async () => {
  const server = await startApiServer();
  onTestFinished(async () => await server.stop());
  const client = clientOver(server.caller);
  await installDefinitions(client, systemClock);
  const { plural, group } = statusShardKind.resource;
  await client.delete(customResourceDefinitions, `${plural}.${group}`);
  const { world } = await loadOnce(client, autopilot, new AbortController().signal);
  expect(world.list(statusShards)).toEqual([]);
});
