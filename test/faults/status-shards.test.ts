/**
 * Tests that a plan with status shards completes at whatever request its leader dies, and however old the views of its
 * successor are.
 */
import { describe, expect, test } from 'vitest';
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { statusShards } from '../../src/api/refit/status-shard.ts';
import { shardReferenceOf } from '../../src/dialects/autopilot/plan/status-shards/merge.ts';
import { shardsOfSizes } from '../../src/dialects/autopilot/plan/status-shards/spread.ts';
import type { RecordSharding } from '../../src/engine/contract/features.ts';
import { nodes, type Resource } from '../../src/kube/resources.ts';
import { controlNodes } from '../../src/signal/names.ts';
import { WHOLE } from '../support/whole.ts';
import { type Death, ShardScene, WORKERS } from './shard-scene.ts';

const SMALL = shardsOfSizes({ plan: 3, shard: 2, failures: 2 });
/**
 * One in `SHARE` deaths is tested. The number is odd, so that deaths before a request and deaths after a request are
 * both tested.
 */
const SHARE = WHOLE ? 1 : 5;

/**
 * The views of the successor at first. For each kind whose view lags: after how many turns of the first leader the view
 * stops being updated.
 */
type Lag = ReadonlyMap<Resource, number>;

/** A number of turns so large that the view has the state before the turn in which the leader died. */
const LAST = 40;
/**
 * Views in which the status shards contain only the controller, and the nodes are as they were before any worker got a
 * signal.
 */
const OLD: Lag = new Map<Resource, number>([
  [statusShards, 3],
  [nodes, 2],
]);
const LAGS: readonly (readonly [string, Lag])[] = [
  ['sees everything', new Map()],
  ['sees old status shards', new Map([[statusShards, LAST]])],
  ['sees an old plan', new Map([[plans, LAST]])],
  [
    'sees nothing new',
    new Map([plans, statusShards, nodes, controlNodes].map((kind) => [kind, LAST])),
  ],
  ['sees very old status shards and nodes', OLD],
  ['sees a very old plan', new Map([[plans, 3]])],
];

/**
 * Runs a scene in which the leader dies and a successor begins with lagging views. Then the successor gets current
 * views and completes the plan.
 */
async function outlive(death: Death, lag: Lag, shards: RecordSharding<Plan>): Promise<ShardScene> {
  const scene = new ShardScene(shards);
  const first = scene.leader(death);
  const successor = scene.leader();
  let fate: 'died' | 'lives' = 'lives';
  for (let turn = 0; turn < 40 && fate === 'lives'; turn++) {
    for (const view of first.views.values()) view.catchUp();
    for (const [kind, view] of successor.views) if (turn < (lag.get(kind) ?? 0)) view.catchUp();
    fate = await scene.turn(first);
  }
  for (const [kind, view] of successor.views) if (!lag.has(kind)) view.catchUp();
  await scene.turn(successor);
  await scene.run(successor);
  return scene;
}

async function requestsOfOneRun(): Promise<number> {
  const scene = new ShardScene(SMALL);
  await scene.run(scene.leader());
  expect([...scene.wrongs]).toEqual([]);
  return scene.requests;
}

/** Every death, in order. */
async function deaths(): Promise<Death[]> {
  const requests = await requestsOfOneRun();
  return Array.from({ length: requests }, (_, index) => index + 1).flatMap((request) =>
    (['before', 'after'] as const).map((moment): Death => ({ request, moment })),
  );
}

/** Returns the invariants that these status shards violate, over all deaths. */
async function wrongsWith(shards: RecordSharding<Plan>, lag: Lag): Promise<Set<string>> {
  const wrongs = new Set<string>();
  for (const death of await deaths()) {
    const scene = await outlive(death, lag, shards);
    for (const wrong of scene.wrongs) wrongs.add(wrong);
  }
  return wrongs;
}

describe.each(LAGS)(
  'the leader dies between any two requests, and its successor %s',
  (_name, lag) => {
    test('after the death of a leader, no intent is lost, no node is started twice, and the plan ends', async () => {
      const all = await deaths();
      expect(all.length).toBeGreaterThan(60);
      for (const death of all.filter((_, index) => index % SHARE === 0)) {
        const scene = await outlive(death, lag, SMALL);
        expect([death, ...scene.wrongs]).toEqual([death]);
        expect(endOf(scene)).toEqual({ done: [...WORKERS, 'c1'].toSorted(), counted: 6 });
      }
    });
  },
);

function endOf({ api }: ShardScene): object {
  const plan = api.read(plans, 'autopilot');
  const { prefix } = shardReferenceOf(plan) ?? { prefix: 'none' };
  const view = api.view(statusShards);
  view.catchUp();
  const own = view.list().filter(({ metadata }) => metadata.name.startsWith(prefix));
  const done = own.flatMap(({ settled = [] }) => settled.flatMap(({ targets }) => targets));
  const counts = JSON.parse(plan.metadata.annotations?.['upgrade.refit.dev/progress'] ?? '{}') as {
    done?: number;
  };
  return { done: done.toSorted(), counted: counts.done };
}

test('without a read past the caches an old status shard starts what was done: the read is needed, and the checks see it', async () => {
  const blind: RecordSharding<Plan> = {
    spread: (...record) => SMALL.spread(...record),
    holding: () => [],
  };
  expect([...(await wrongsWith(blind, OLD))]).toContain('a start of what was done');
});
