/**
 * Tests that an agent downloads in advance what its leader requests. It does not touch its service, and it keeps its
 * own rules.
 */
import { appendFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { upgradePathsOf } from '../../src/agent/state/state-directory.ts';
import type { AgentPolicy } from '../../src/signal/annotations.ts';
import { PREFETCH_ANNOTATION, SIGNAL_STATUSES } from '../../src/signal/names.ts';
import { encodePrefetch } from '../../src/signal/prefetch.ts';
import { type MemoryCluster, startMemoryCluster } from './memory-cluster.ts';
import { NEW, OLD, Rig, type RigOptions } from './rig.ts';

const BYTES = 4 * 1024 * 1024;
const PREPARED = SIGNAL_STATUSES.filter((status) => status !== 'Downloading');

let cluster: MemoryCluster;
let nodes = 0;

beforeAll(async () => {
  cluster = await startMemoryCluster();
});
afterAll(async () => await cluster.stop());

async function start(options: Partial<RigOptions> = {}): Promise<Rig> {
  const { admin, kubeconfig } = cluster;
  const policy = { soakMs: 0 };
  return await Rig.start({
    name: `ahead${++nodes}`,
    admin,
    kubeconfig,
    bytes: BYTES,
    policy,
    ...options,
  });
}

interface Wish {
  readonly sha256?: string;
  readonly policy?: AgentPolicy;
}

async function ask(
  rig: Rig,
  { sha256 = rig.server.sha256('/new'), policy = {} }: Wish = {},
): Promise<void> {
  const command = {
    id: 0,
    kind: 'k0supdate',
    url: `${rig.server.url}/new`,
    version: NEW,
    sha256,
  } as const;
  await rig.annotate(encodePrefetch({ rollout: 'uid', command, policy }));
}

const says = (rig: Rig, text: string): boolean =>
  rig.agent?.log.some((line) => line.includes(text)) === true;
const untilSaid = async (rig: Rig, text: string): Promise<void> =>
  await rig.until(() => expect(says(rig, text)).toBe(true));

test('a node downloads, verifies and tests a payload before its signal and does not download it again', async () => {
  await using rig = await start();
  rig.startAgent();
  await ask(rig);
  await untilSaid(rig, '"fetched ahead"');
  expect([await rig.host.version(), rig.host.starts, await rig.journal()]).toEqual([
    OLD,
    1,
    expect.stringContaining('"idle"'),
  ]);
  await rig.send('/new', NEW);
  await rig.end();
  expect(rig.statuses).toEqual(PREPARED);
  expect(await rig.host.version()).toBe(NEW);
  expect(rig.server.requests.map(({ bytesSent }) => bytesSent)).toEqual([BYTES]);
});

test('the signal does not wait for it, and goes on where it was', async () => {
  await using rig = await start({ faults: [{ path: '/new', paceMs: 20, times: 1 }] });
  rig.startAgent();
  await ask(rig);
  await rig.until(() => expect(rig.server.requests[0]?.bytesSent ?? 0).toBeGreaterThan(BYTES / 8));
  await rig.send('/new', NEW);
  await rig.end();
  expect(rig.statuses).toEqual([...SIGNAL_STATUSES]);
  expect(rig.server.requests.map(({ from }) => from > 0)).toEqual([false, true]);
});

test('a file that was changed since is not used', async () => {
  await using rig = await start();
  rig.startAgent();
  await ask(rig);
  await untilSaid(rig, '"fetched ahead"');
  await appendFile(upgradePathsOf(rig.host.binary).staged, 'x');
  await rig.send('/new', NEW);
  await rig.end();
  expect([rig.statuses, await rig.host.version()]).toEqual([[...SIGNAL_STATUSES], NEW]);
});

test('what is not asked for any more is removed', async () => {
  await using rig = await start();
  rig.startAgent();
  await ask(rig);
  await untilSaid(rig, '"fetched ahead"');
  expect(await rig.leftovers()).not.toEqual([]);
  await rig.annotate({ [PREFETCH_ANNOTATION]: '{}' });
  await rig.until(async () => expect(await rig.leftovers()).toEqual([]));
});

test.each<[string, string[], AgentPolicy, string]>([
  [
    'another host than the flags allow',
    ['--allowed-hosts', 'mirror.example'],
    {},
    'downloads nothing from',
  ],
  ['a version below the lowest', ['--lowest-version', 'v1.99.0'], {}, 'is below v1.99.0'],
])('the rules of the agent count: nothing comes from %s', async (_what, flags, policy, reason) => {
  await using rig = await start({ flags });
  rig.startAgent();
  await ask(rig, { policy });
  await untilSaid(rig, reason);
  expect([rig.server.requests, await rig.leftovers()]).toEqual([[], []]);
});

test('a payload with another hash is not kept, and the disk reserve stays free', async () => {
  await using rig = await start();
  rig.startAgent();
  await ask(rig, { sha256: 'ab'.repeat(32) });
  await untilSaid(rig, '"cannot fetch ahead"');
  await ask(rig, { policy: { diskReserveBytes: 2 ** 60 } });
  await untilSaid(rig, 'the whole file system has only');
  expect(await rig.host.version()).toBe(OLD);
});
