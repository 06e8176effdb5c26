/** Tests airgap bundles with real agent processes, an API server, a download server and a directory. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentOf } from '../../src/signal/agent-presence.ts';
import { type MemoryCluster, startMemoryCluster } from './memory-cluster.ts';
import { NEW, NEXT, OLD, Rig, type RigOptions } from './rig.ts';
import { Storm } from './storm.ts';

let cluster: MemoryCluster;
let nodes = 0;

beforeAll(async () => {
  cluster = await startMemoryCluster();
});
afterAll(async () => await cluster.stop());

const startRig = async (options: Partial<RigOptions> = {}): Promise<Rig> =>
  await Rig.start({
    name: `airgap${++nodes}`,
    admin: cluster.admin,
    kubeconfig: cluster.kubeconfig,
    ...options,
  });

const AIRGAP = { kind: 'airgapupdate' };
const imagesOf = ({ host }: Rig): string => join(host.dataDirectory, 'images');

async function expectPlaced(rig: Rig, ...names: string[]): Promise<void> {
  await rig.end();
  expect(rig.statuses).toEqual(['Downloading', 'Completed']);
  expect((await readdir(imagesOf(rig))).toSorted()).toEqual(names);
  // The host already had `worker-profile.yaml`, a file of k0s.
  expect((await readdir(rig.host.dataDirectory)).toSorted()).toEqual([
    'images',
    'worker-profile.yaml',
  ]);
}

test('the agent places an airgap bundle with two writes and does not restart the service', async () => {
  await using rig = await startRig();
  const { pid } = rig.host;
  rig.startAgent();
  await rig.announced();
  await rig.send('/new', NEW, AIRGAP);
  await expectPlaced(rig, 'new');
  expect(rig.changes).toBe(2);
  expect(rig.server.requests).toMatchObject([{ path: '/new', complete: true }]);
  expect(rig.host.pid).toBe(pid);
  expect(await rig.host.version()).toBe(OLD);
});

test('a node that has received its airgap bundle can then take the update', async () => {
  await using rig = await startRig();
  rig.startAgent();
  await rig.send('/new', NEW, AIRGAP);
  await expectPlaced(rig, 'new');
  await rig.send('/new', NEW);
  await rig.end();
  expect(rig.statuses.at(-1)).toBe('Completed');
  expect(await rig.host.version()).toBe(NEW);
});

test('a bundle needs no service that answers', async () => {
  await using rig = await startRig();
  await rig.host.powerOff();
  rig.startAgent();
  await rig.send('/new', NEW, AIRGAP);
  await expectPlaced(rig, 'new');
});

test('if the agent is killed during the download of a bundle, the next agent resumes the download', async () => {
  await using rig = await startRig({ bytes: 640_000, faults: [{ paceMs: 20 }] });
  const first = rig.startAgent();
  await rig.send('/new', NEW, AIRGAP);
  const part = join(rig.host.dataDirectory, '.refit-airgap.part');
  await rig.until(async () => expect((await stat(part)).size).toBeGreaterThan(100_000));
  await first.stop('SIGKILL');
  expect(rig.statuses).toEqual(['Downloading']);
  rig.startAgent();
  await expectPlaced(rig, 'new');
  const [broken, continued, ...more] = rig.server.requests;
  expect(more).toEqual([]);
  expect(broken?.complete).toBe(false);
  expect(continued).toMatchObject({ status: 206, complete: true });
  expect(continued?.from).toBeGreaterThan(100_000);
});

test('somebody who writes the Node all the time costs no second download', async () => {
  await using rig = await startRig({ bytes: 64_000, faults: [{ paceMs: 10 }] });
  rig.startAgent();
  await rig.send('/new', NEW, AIRGAP);
  await using storm = new Storm(rig);
  await expectPlaced(rig, 'new');
  expect(storm.writes).toBeGreaterThan(5);
  expect(rig.server.requests).toMatchObject([{ complete: true }]);
});

test('the agent downloads a bundle only once, and replaces a bundle whose version never ran', async () => {
  await using rig = await startRig();
  rig.startAgent();
  await rig.send('/old', OLD, AIRGAP);
  await expectPlaced(rig, 'old');
  await rig.send('/old', OLD, AIRGAP);
  await expectPlaced(rig, 'old');
  expect(rig.server.requests).toHaveLength(1);
  await rig.send('/new', NEW, AIRGAP);
  await expectPlaced(rig, 'new', 'old');
  await rig.send('/next', NEXT, AIRGAP);
  // The service still runs OLD, so the bundle of OLD stays.
  await expectPlaced(rig, 'next', 'old');
  const list = JSON.parse(
    await readFile(join(rig.host.stateDirectory, 'airgap-bundles.json'), 'utf8'),
  ) as object;
  expect(list).toMatchObject({
    bundles: [
      { name: 'old', version: OLD },
      { name: 'next', version: NEXT },
    ],
  });
});

test('0s removes the previous bundle once the upgrade has succeeded, and the agent announces it', async () => {
  await using rig = await startRig({ policy: { soakMs: 0, keepPreviousMs: 0 } });
  rig.startAgent();
  await rig.announced();
  await rig.send('/old', OLD, AIRGAP);
  await expectPlaced(rig, 'old');
  await rig.send('/new', NEW, AIRGAP);
  await expectPlaced(rig, 'new', 'old');
  expect(agentOf(await rig.object()).keptBundle).toMatchObject({ version: OLD });
  await rig.send('/new', NEW);
  await rig.end();
  expect(rig.statuses.at(-1)).toBe('Completed');
  await rig.until(async () => {
    expect(await readdir(imagesOf(rig))).toEqual(['new']);
    expect(agentOf(await rig.object()).keptBundle).toEqual({ version: OLD, gone: 'Expired' });
  });
});

test('without a time the previous bundle stays after the upgrade, until the next bundle', async () => {
  await using rig = await startRig({ policy: { soakMs: 0 } });
  rig.startAgent();
  await rig.announced();
  await rig.send('/old', OLD, AIRGAP);
  await expectPlaced(rig, 'old');
  await rig.send('/new', NEW, AIRGAP);
  await expectPlaced(rig, 'new', 'old');
  await rig.send('/new', NEW);
  await rig.end();
  expect((await readdir(imagesOf(rig))).toSorted()).toEqual(['new', 'old']);
  expect(agentOf(await rig.object()).keptBundle).toEqual({ version: OLD });
  await rig.send('/next', NEXT, AIRGAP);
  await expectPlaced(rig, 'new', 'next');
});

test.each<[string, Partial<RigOptions>, '/new' | '/none', RegExp]>([
  [
    'damaged bytes',
    { breakFor: ['harmed'], name: 'harmed' },
    '/new',
    /^sha256 .*, wanted [0-9a-f]{64}$/,
  ],
  ['no file', {}, '/none', /answered 404/],
  ['too many bytes', { flags: ['--max-download-bytes', '100'] }, '/new', /bigger than 100 bytes/],
  [
    'no data directory',
    { flags: ['--data-dir', '/nowhere/k0s'] },
    '/new',
    /no data directory \/nowhere\/k0s/,
  ],
])('%s: nothing is placed, and the reason is told', async (_name, options, file, reason) => {
  await using rig = await startRig(options);
  rig.startAgent();
  await rig.send(file, NEW, AIRGAP);
  await rig.end();
  expect(rig.statuses).toEqual(['Downloading', 'FailedDownload']);
  expect((await rig.report())?.reason).toMatch(reason);
  expect(await readdir(imagesOf(rig)).catch(() => [])).toEqual([]);
});
