/** Tests that `refit ready` agrees with the real scheduler about the room for pods. `npm run bench -- ready` tries many clusters. */
import { expect, test } from 'vitest';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { randomCluster } from '../support/ready/random-cluster.ts';
import { disagrees, tryRoom } from '../support/ready/room-trial.ts';
import { kubeconfigFor } from './control-plane.ts';

const SEEDS = [1, 2, 5, 21];

test.each(SEEDS)(
  'in the random cluster %i, the scheduler agrees about each pod',
  async (seed) => {
    using client = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
    const stage = { client, namespace: `room-${seed}`, abort: AbortSignal.timeout(240_000) };
    const trials = await tryRoom(stage, randomCluster(seed, `room-${seed}`));
    expect(trials.length).toBeGreaterThan(3);
    expect(trials.filter(disagrees)).toEqual([]);
  },
  250_000,
);
