/**
 * Tests that a change of the Node of its host wakes the agent of a controller. The clock of the agent does not advance,
 * so polling cannot cause this.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { createControlNode, createNode, reportReady } from '../../sandbox/cluster/objects.ts';
import { agentArguments, startHost } from '../../sandbox/hosts/host.ts';
import type { ActiveJournal } from '../../src/agent/journal.ts';
import { parseAgentOptions } from '../../src/agent/options.ts';
import { findServices } from '../../src/agent/service/find-services.ts';
import { findProcess } from '../../src/agent/service/processes.ts';
import { servicePlaces } from '../../src/agent/service/service-place.ts';
import { serviceRestarter } from '../../src/agent/service/service-restarter.ts';
import { askService } from '../../src/agent/service/trusted-service.ts';
import { saveJournal } from '../../src/agent/state/journal-file.ts';
import { openStateDirectory } from '../../src/agent/state/state-directory.ts';
import { serveHost } from '../../src/composition/agent/serve-host.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { nodes } from '../../src/kube/resources.ts';
import { decodeSignal, encodeSignal } from '../../src/signal/annotations.ts';
import { controlNodes } from '../../src/signal/names.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/log.ts';
import { before, key, signalAt } from '../support/builders/agent-situations.ts';
import { FakeClock } from '../support/clock/fake-clock.ts';
import { startMemoryCluster } from './memory-cluster.ts';
import { NEW, OLD } from './rig.ts';

const NAME = 'c1';
const CHANGES = 12;
const PATIENCE = { timeout: 150_000, interval: 20 };

test('the first heartbeat of the kubelet ends the wait for it, without a poll', async () => {
  await using things = new AsyncDisposableStack();
  const cluster = await startMemoryCluster();
  things.defer(async () => await cluster.stop());
  const directory = await mkdtemp(join(tmpdir(), 'refit-beat-'));
  things.defer(async () => await rm(directory, { recursive: true }));
  const flags = ['--enable-worker', `--kubelet-extra-args=--hostname-override=${NAME}`];
  const host = await startHost({ name: NAME, role: 'controller', directory, version: NEW, flags });
  things.defer(async () => await host.stop());

  const clock = new FakeClock(Date.now());
  const { admin } = cluster;
  await createControlNode(admin, NAME, '127.0.0.1', 'controller+worker');
  await createNode(admin, NAME, {});
  await reportReady(admin, NAME, OLD, '2020-01-01T00:00:00Z');
  const annotations = encodeSignal(signalAt('Restart', key));
  await admin.patch(controlNodes, NAME, { metadata: { annotations } }, { type: 'merge' });

  const options = parseAgentOptions(agentArguments(host, cluster.kubeconfig));
  if (options === undefined) throw new Error('the arguments ask for help only');
  const paths = await openStateDirectory(options.stateDirectory, options.runDirectory);
  await saveJournal(paths.journal, watching(host));
  const said: string[] = [];
  const info = (message: string): void => void said.push(message);
  const own = { ...silentLogger, info };
  const log = { ...own, child: () => own };
  const tools = { clock, random: () => 0.5, log };
  const askStatus = async (socket: string) => await askService(socket, 2_000);
  const places = servicePlaces({ ...tools, flags: options.place, findServices, askStatus });
  await places.search();
  const stop = new AbortController();
  const config = await loadClusterConfig({ path: cluster.kubeconfig });
  const parts = { ...tools, options, config, paths, places, binary: host.binary, version: '0' };
  const serving = serveHost({ ...parts, restarter: serviceRestarter([], log) }, stop.signal);
  things.defer(async () => {
    stop.abort();
    await serving;
  });

  await vi.waitFor(() => expect(said).toContain('waiting for the kubelet'), PATIENCE);
  // The agent also reads the Node after its own few changes of the ControlNode, but less often than the test counts
  // here.
  for (let change = 0; change < CHANGES; change++) {
    const looks = looksAtNode();
    await admin.patch(
      nodes,
      NAME,
      { metadata: { labels: { change: `${change}` } } },
      { type: 'merge' },
    );
    await vi.waitFor(() => expect(looksAtNode()).toBeGreaterThan(looks), PATIENCE);
  }
  expect(await status()).toBe('Restart');
  await reportReady(admin, NAME, NEW, rfc3339(clock.now() + 60_000));
  await vi.waitFor(async () => expect(await status()).toBe('UnCordoning'), PATIENCE);

  function looksAtNode(): number {
    const looks = cluster.requests.filter(
      ({ verb, resource }) => verb === 'get' && resource === 'nodes',
    );
    return looks.length;
  }
  async function status(): Promise<string | undefined> {
    const { metadata } = await admin.get(controlNodes, NAME);
    return decodeSignal(metadata.annotations)?.status?.status;
  }
});

/** Returns the journal of an agent that watches the process that it restarted. */
function watching({ pid = 0, binary }: { pid: number | undefined; binary: string }): ActiveJournal {
  const fresh = findProcess(pid);
  if (fresh === undefined) throw new Error(`there is no process ${pid}`);
  const original = { ...before, started: fresh.started };
  const policy = { cordoning: 'leader' } as const;
  const work = { signal: key, policy, binary, from: OLD, original };
  return { phase: 'soaking', work, spent: {}, fresh, since: 0, restartedAt: 1 };
}
