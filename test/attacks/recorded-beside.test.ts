/** Tests that the simulated agent of k0s, next to another agent, behaves as the real agent does in the recording. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { leases, nodes } from '../../src/kube/resources.ts';
import { decodeSignal, encodeSignal } from '../../src/signal/annotations.ts';
import { CENTRAL_CORDONING_LABEL } from '../../src/signal/names.ts';
import { systemClock } from '../../src/util/clock.ts';
import { jsonLogger } from '../../src/util/log.ts';
import { type MemoryCluster, startMemoryCluster } from '../agent/memory-cluster.ts';
import { NEW, Rig } from '../agent/rig.ts';
import { K0sNode } from '../support/doubles/k0s-node.ts';
import { LEADER_LEASE } from '../support/doubles/runtime/lease-election.ts';
import { Recorder } from '../support/doubles/runtime/recorder.ts';
import { surroundingsFor } from '../support/doubles/surroundings.ts';
import { timesOf } from '../support/doubles/times.ts';
import { type RecordedRace, recordedRaces } from '../support/recordings.ts';

let cluster: MemoryCluster;
beforeAll(async () => {
  cluster = await startMemoryCluster();
});
afterAll(async () => await cluster.stop());

/** k0s does not log the other statuses. */
const LOGGED = ['Downloading', 'Cordoning', 'Restart', 'UnCordoning'];

/**
 * Whether the other agent acts, and whether the drain ends before or after the download of the simulated agent. The
 * other agent has downloaded in advance, so it reports `Cordoning` while the simulated agent downloads.
 */
type Other = 'none' | 'fetched ahead, drained early' | 'fetched ahead, drained late';

let count = 0;

/**
 * Sends one signal to a worker with the simulated agent of k0s. The test acts as the other agent, and as the leader,
 * which cordons the node.
 */
async function race(other: Other): Promise<Omit<RecordedRace, 'node'>> {
  const { admin, kubeconfig } = cluster;
  const name = `beside${process.pid}-${++count}`;
  await using rig = await Rig.start({
    name,
    admin,
    kubeconfig,
    ownAgent: true,
    bytes: 64_000,
    faults: [{ paceMs: 20 }],
  });
  // The test is the leader, and the leader cordons.
  const { namespace, name: lease } = LEADER_LEASE;
  const metadata = { labels: { [CENTRAL_CORDONING_LABEL]: 'somebody' } };
  await admin.patch(leases, lease, { metadata }, { type: 'merge', namespace });
  const recorder = new Recorder();
  const log: string[] = [];
  const surroundings = surroundingsFor({
    config: await loadClusterConfig({ path: kubeconfig }),
    author: { by: `system:node:${name}`, via: name },
    recorder,
    times: { ...timesOf(0.05), boot: 0, firstStatus: 0 },
    apiPort: 0,
    log: jsonLogger(
      (line) => log.push(line),
      () => systemClock.now(),
      'info',
    ),
  });
  const double = new K0sNode({ ...surroundings, host: rig.host, role: 'worker', address: '' });
  await using things = new AsyncDisposableStack();
  things.defer(() => surroundings.close());
  things.defer(async () => await double.stop());
  const report = async (status: string): Promise<void> => {
    const signal = decodeSignal((await rig.object()).metadata.annotations);
    if (signal === undefined) throw new Error('there is no signal');
    const reported = { ...signal, status: { status, timestamp: rig.created } };
    await rig.annotate(encodeSignal(reported));
  };
  const writes = () => ownWrites(recorder);
  const play: Record<string, () => Promise<void>> = {
    Downloading: async () => {
      if (other === 'none') return;
      await rig.until(() => expect(rig.server.requests.at(0)?.bytesSent).toBeGreaterThan(0));
      await admin.patch(nodes, name, { spec: { unschedulable: true } }, { type: 'merge' });
      await report('Cordoning');
    },
    Cordoning: async () => {
      const isLate = other === 'fetched ahead, drained late';
      if (isLate) await rig.until(() => expect(writes().at(-1)?.isWritten).toBe(false));
      await report('ApplyingUpdate');
    },
    UnCordoning: async () => {
      await admin.patch(nodes, name, { spec: { unschedulable: null } }, { type: 'merge' });
      await report('Completed');
    },
  };
  const acted: Promise<void>[] = [];
  rig.onStatus = (status) => void acted.push(play[status]?.() ?? Promise.resolve());
  double.start();
  await rig.send('/new', NEW);
  await rig.end();
  await Promise.all(acted);
  return {
    statuses: rig.statuses,
    written: writes().flatMap(({ status, isWritten }) => (isWritten ? [status] : [])),
    refused: writes().flatMap(({ status, isWritten }) => (isWritten ? [] : [status])),
    missedDownload: log.some((line) => line.includes('k0s.tmp') && line.includes('ENOENT')),
  };
}

/** Returns the statuses that the simulated agent tried to write. Writes that are not answered yet are left out. */
function ownWrites({ writes }: Recorder): { status: string; isWritten: boolean }[] {
  return writes.flatMap(({ code, resource, annotations }) => {
    const status = decodeSignal(annotations)?.status?.status;
    const isLogged = resource === nodes.plural && status !== undefined && LOGGED.includes(status);
    return isLogged && code > 0 ? [{ status, isWritten: code < 300 }] : [];
  });
}

const [first, ...later] = recordedRaces('both-agents-fetched-ahead');
const RACES: [string, Other, RecordedRace | undefined][] = [
  ['a node for which nothing was fetched ahead', 'none', first],
  ['the node is drained before the download', 'fetched ahead, drained early', later[0]],
  ['the node is drained after the download', 'fetched ahead, drained late', later[1]],
];

test.each(RACES)('both-agents-fetched-ahead: %s', async (_name, other, recorded) => {
  expect({ node: recorded?.node, ...(await race(other)) }).toEqual(recorded);
});

test('both-agents-k0s-leads: every node shows the statuses of one agent alone, in its order', async () => {
  const { statuses } = await race('none');
  const races = recordedRaces('both-agents-k0s-leads');
  expect(races.map(({ node }) => node)).toEqual(['c3', 'c1', 'c2', 'w1', 'w3', 'w2']);
  for (const recorded of races) expect(recorded.statuses, recorded.node).toEqual(statuses);
});
