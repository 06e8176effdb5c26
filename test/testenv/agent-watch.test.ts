/**
 * Tests that soon after its API server is available again, an agent receives the signals that were written during the
 * downtime.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startHost } from '../../sandbox/hosts/host.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import * as credentials from '../../tools/controlplane/kubeconfig.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { NEW, OLD, Rig } from '../agent/rig.ts';
import { CONTROLLER_ADDRESSES, controlPlane } from './control-plane.ts';
import { clientOf } from './drain-stage.ts';

/** About as long as a real restart takes. In this time, an unbounded backoff would grow beyond the allowed delay. */
const AWAY_MS = 12_000;

let admin: KubeClient;
beforeAll(async () => {
  admin = await clientOf('admin');
});
afterAll(() => admin.close());

test('after a controller restart, a worker gets a signal in less time than the restart took', async () => {
  await using things = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'refit-away-'));
  things.defer(async () => await rm(directory, { recursive: true }));
  const listen = `${CONTROLLER_ADDRESSES[8]}:${await freePort()}`;
  const moments: number[] = [];
  const controller = await startHost({
    name: 'away-controller',
    role: 'controller',
    directory,
    version: OLD,
    restartDelayMs: AWAY_MS,
    apiServer: { listen, upstream: new URL(controlPlane().url).host },
    onService: () => void moments.push(performance.now()),
  });
  things.defer(async () => await controller.stop());
  const name = 'away-worker';
  const kubeconfig = await credentials.kubeconfigFor(
    { ...controlPlane(), url: `https://${listen}` },
    { node: name },
  );
  const rig = things.use(await Rig.start({ name, admin, kubeconfig }));
  const agent = rig.startAgent();
  await rig.until(() =>
    expect(agent.log.join('\n')).toContain('the leader may cordon and drain this node'),
  );

  process.kill(controller.pid ?? 0, 'SIGTERM');
  await vi.waitFor(() => expect(moments).toHaveLength(2), { timeout: 150_000 });
  await rig.send('/new', NEW);
  await rig.until(() => expect(rig.statuses).not.toEqual([]));
  const [, gone = 0, back = 0] = moments;
  expect(rig.statuses[0]).toBe('Downloading');
  expect(performance.now() - back).toBeLessThan((back - gone) / 3);
  await rig.end();
});
