/**
 * Tests that the parts of the controller update a whole fleet. It checks the events that each agent receives, and the
 * targets that the plan lists.
 */
import { expect, test } from 'vitest';
import { plans } from '../../src/api/autopilot/plan.ts';
import { statusShards } from '../../src/api/refit/status-shard.ts';
import { prepareControllerProcess } from '../../src/composition/controller-process.ts';
import { LEADER_LEASE } from '../../src/dialects/autopilot/leader-lease.ts';
import { autopilot } from '../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import { shardsOfSizes } from '../../src/dialects/autopilot/plan/status-shards/spread.ts';
import { type Node, nodes } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { systemClock as clock } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/log.ts';
import { CONTROLLERS, startFleet } from './fleet.ts';
import { IMAGES } from './objects.ts';
import { rollOut } from './rollout.ts';
import { StatusBytes } from './tally.ts';

const WORKERS = 500;
const CONCURRENT = 125;
/**
 * The most milliseconds between two changes of the plan on a busy machine. A plan that makes progress changes much more
 * often.
 */
const STALL_MS = 150_000;
/**
 * The limit of the test. It matters only if the test never ends, because STALL_MS ends a plan without progress earlier.
 */
const TEST_MS = 1_200_000;
/** Limits for a small fleet. They are proportional to the limits 5,000, 200 and 1,000 for a plan of 15,000 targets. */
const SIZES = { plan: 100, shard: 50, failures: 20 };

test(
  '500 workers, 125 at a time: status shards hold them, the plan lists who is in flight, and no agent hears of another',
  async () => {
    await using started = new AsyncDisposableStack();
    const status = new StatusBytes();
    const fleet = await startFleet({
      workers: WORKERS,
      stepMs: 1,
      clock,
      random: () => 0.5,
      onRequest: (record) => status.note(record),
    });
    started.defer(async () => await fleet.stop());
    const stop = new AbortController();
    const config = { server: fleet.server.url, user: {}, namespace: 'default', files: [] };
    const client = createClient(config);
    started.defer(() => client.close());
    const manager = await prepareControllerProcess(
      {
        policyEffects: {},
        dialects: [
          {
            ...autopilot,
            sharding: shardsOfSizes(SIZES),
          },
        ],
        config,
        client,
        lease: LEADER_LEASE,
        component: 'refit-controller',
        log: silentLogger,
      },
      stop.signal,
    );
    const running = manager.run(stop.signal);
    started.defer(async () => {
      stop.abort();
      await running;
    });

    const { mostListed } = await rollOut(fleet, {
      concurrent: CONCURRENT,
      stallMs: STALL_MS,
      clock,
      abort: stop.signal,
    });

    const shards = (await fleet.client.listAll(statusShards)).items;
    const done = shards.flatMap(({ settled = [] }) => settled.flatMap(({ targets }) => targets));
    expect([new Set(done).size, shards.flatMap(({ pending }) => pending)]).toEqual([
      WORKERS + CONTROLLERS,
      [],
    ]);
    expect(shards).toHaveLength(Math.ceil(WORKERS / SIZES.shard) + 1);
    expect(mostListed).toBeLessThanOrEqual(CONCURRENT);
    const { metadata } = await fleet.client.get(plans, 'autopilot');
    expect(JSON.parse(metadata.annotations?.['upgrade.refit.dev/progress'] ?? '{}')).toMatchObject({
      total: WORKERS + CONTROLLERS,
      done: WORKERS + CONTROLLERS,
      inFlight: 0,
      pending: 0,
      failed: 0,
    });
    // The controller caches Nodes without their images, and has written each Node several times. The writes must not
    // remove the images.
    const all = (await fleet.client.listAll(nodes)).items as (Node & {
      status?: { images?: unknown[] };
    })[];
    expect(all.filter((node) => node.status?.images?.length !== IMAGES)).toEqual([]);
    expect(status.of('status shards').writes).toBeGreaterThan(shards.length);
    const events = [...fleet.events.values()];
    expect(events.filter(({ others }) => others > 0)).toEqual([]);
    // The events are: one for the first state of the object, one for the signal, six for reports, one for the version,
    // and two for the cordon and uncordon by the leader.
    expect(Math.max(...events.map(({ own }) => own))).toBeLessThanOrEqual(14);
    expect(Math.min(...events.map(({ own }) => own))).toBeGreaterThanOrEqual(7);
  },
  TEST_MS,
);
