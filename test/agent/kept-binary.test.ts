/**
 * Tests the previous binary on a host, with a real agent: it allows a roll-back without a download, and it is removed
 * in the end.
 */
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentOf } from '../../src/signal/agent-presence.ts';
import type { AgentPolicy } from '../../src/signal/annotations.ts';
import { type MemoryCluster, startMemoryCluster } from './memory-cluster.ts';
import { NEW, OLD, Rig, type RigOptions } from './rig.ts';

let cluster: MemoryCluster;
let nodes = 0;

beforeAll(async () => {
  cluster = await startMemoryCluster();
});
afterAll(async () => await cluster.stop());

const startRig = async (policy: AgentPolicy, options: Partial<RigOptions> = {}): Promise<Rig> =>
  await Rig.start({
    name: `kept${++nodes}`,
    admin: cluster.admin,
    kubeconfig: cluster.kubeconfig,
    policy: { soakMs: 0, ...policy },
    ...options,
  });

const recordOf = async (rig: Rig): Promise<string> =>
  await readFile(join(rig.host.stateDirectory, 'kept-binary.json'), 'utf8');

test('the way back needs no download, and the agent announces what it keeps', async () => {
  await using rig = await startRig({ keepPreviousMs: 3_600_000 });
  rig.startAgent();
  await rig.until(async () => expect(agentOf(await rig.object()).ours).toBe(true));
  await rig.send('/new', NEW);
  await rig.end();
  expect(JSON.parse(await recordOf(rig))).toMatchObject({
    version: OLD,
    sha256: rig.server.sha256('/old'),
    settled: true,
    leftMs: 3_600_000,
  });
  const announced = {
    version: OLD,
    sha256: rig.server.sha256('/old'),
    until: expect.any(String) as string,
  };
  // The last report announces the kept binary, so people know at once that the node can go back.
  expect(agentOf(await rig.object()).kept).toEqual(announced);
  await rig.agent?.stop('SIGTERM');
  rig.startAgent();
  await rig.until(async () => expect(agentOf(await rig.object()).kept).toEqual(announced));
  const before = rig.server.requests.length;
  await rig.send('/old', OLD);
  await rig.end();
  expect(rig.statuses.at(-1)).toBe('Completed');
  expect(await rig.installed()).toBe(rig.server.sha256('/old'));
  expect(await rig.installed('.previous')).toBe(rig.server.sha256('/new'));
  expect(rig.server.requests).toHaveLength(before);
  expect(await rig.leftovers()).toEqual([]);
});

test('a leader that uncordons the node ends the upgrade, and the time of the binary begins', async () => {
  await using rig = await startRig({ keepPreviousMs: 3_600_000, cordoning: 'leader' });
  rig.startAgent();
  await rig.until(async () => expect(agentOf(await rig.object()).ours).toBe(true));
  await rig.send('/new', NEW);
  await rig.until(() => expect(rig.statuses.at(-1)).toBe('Cordoning'));
  await rig.answer('ApplyingUpdate');
  await rig.until(() => expect(rig.statuses.at(-1)).toBe('UnCordoning'));
  expect(agentOf(await rig.object()).kept).toEqual({
    version: OLD,
    sha256: rig.server.sha256('/old'),
  });
  await rig.answer('Completed');
  await rig.until(async () =>
    expect(JSON.parse(await recordOf(rig))).toMatchObject({ settled: true }),
  );
});

test('0s removes the previous binary after the success', async () => {
  await using rig = await startRig({ keepPreviousMs: 0 });
  rig.startAgent();
  await rig.send('/new', NEW);
  await rig.end();
  await rig.until(
    async () => await expect(stat(`${rig.host.binary}.previous`)).rejects.toThrow('ENOENT'),
  );
  expect(await rig.installed()).toBe(rig.server.sha256('/new'));
  expect(await recordOf(rig)).toContain('"gone":"Expired"');
});

test('0s keeps the previous binary for the roll-back of a bad version', async () => {
  await using rig = await startRig(
    { keepPreviousMs: 0, restartTimeoutMs: 3_000 },
    { broken: 'crashes' },
  );
  rig.startAgent();
  await rig.send('/new', NEW);
  await rig.end();
  expect(await rig.report()).toMatchObject({ rolledBack: true });
  expect(await rig.installed()).toBe(rig.server.sha256('/old'));
});

test('a previous binary that was changed is not taken: the agent downloads', async () => {
  await using rig = await startRig({});
  rig.startAgent();
  await rig.send('/new', NEW);
  await rig.end();
  await writeFile(`${rig.host.binary}.previous`, 'changed');
  const before = rig.server.requests.length;
  await rig.send('/old', OLD);
  await rig.end();
  expect(rig.statuses.at(-1)).toBe('Completed');
  expect(await rig.installed()).toBe(rig.server.sha256('/old'));
  expect(rig.server.requests.length).toBeGreaterThan(before);
});
