/** Tests that a controller is registered and stays registered, without a write that changes nothing. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { type MemoryCluster, startMemoryCluster } from '../../../test/agent/memory-cluster.ts';
import { apiVersionOf } from '../../kube/resources.ts';
import { type ControlNode, controlNodes, MODE_ANNOTATION } from '../../signal/names.ts';
import { systemClock } from '../../util/clock.ts';
import { silentLogger } from '../../util/log.ts';
import { type OwnObject, ownObject } from '../object/own-object.ts';
import type { ControllerFacts } from './control-node.ts';
import { keepRegistered } from './keep-registered.ts';

let cluster: MemoryCluster;
let stop: AbortController;
let count = 0;
let facts: ControllerFacts | undefined;
const silent = () =>
  ({
    name: `c${count}`,
    nodeName: `c${count}`,
    mode: 'controller',
    os: 'linux',
    arch: 'amd64',
  }) as const;

beforeAll(async () => {
  cluster = await startMemoryCluster();
});
afterAll(async () => await cluster.stop());
beforeEach(() => {
  count++;
  stop = new AbortController();
  facts = { ...silent(), address: '10.0.0.1', version: 'v1' };
});
afterEach(() => stop.abort());

function start(): OwnObject {
  const tools = { clock: systemClock, random: () => 0, log: silentLogger };
  const object = ownObject({
    ...tools,
    client: cluster.admin,
    resource: controlNodes,
    name: silent().name,
  });
  void object.follow(stop.signal);
  void keepRegistered(
    { ...tools, object, describe: async () => await Promise.resolve(facts) },
    stop.signal,
  );
  return object;
}

const read = async (): Promise<ControlNode> => await cluster.admin.get(controlNodes, silent().name);
const shows = async (expected: object): Promise<void> =>
  await vi.waitFor(async () => expect(await read()).toMatchObject(expected), {
    timeout: 60_000,
    interval: 10,
  });
const annotate = async (annotations: Record<string, string>): Promise<unknown> =>
  await cluster.admin.patch(
    controlNodes,
    silent().name,
    { metadata: { annotations } },
    { type: 'merge' },
  );
const writes = (): string[] =>
  cluster.requests
    .filter(({ name, verb }) => name === silent().name && ['patch', 'update'].includes(verb))
    .map(({ verb }) => verb);

const labels = (): Record<string, string> => ({
  'kubernetes.io/hostname': silent().nodeName,
  'kubernetes.io/os': 'linux',
  'kubernetes.io/arch': 'amd64',
});
const whole = (): object => ({
  metadata: { labels: labels(), annotations: { [MODE_ANNOTATION]: 'controller' } },
  status: {
    addresses: [
      { address: '10.0.0.1', type: 'InternalIP' },
      { address: silent().nodeName, type: 'Hostname' },
    ],
    k0sVersion: 'v1',
  },
});

test('the agent creates a missing ControlNode, and the next agent does not write it again', async () => {
  start();
  await shows(whole());
  expect(writes()).toEqual(['patch', 'update']);
  stop.abort();
  stop = new AbortController();
  const object = start();
  await annotate({ later: '1' });
  await vi.waitFor(
    () => expect(object.newest?.metadata.annotations).toHaveProperty('later'),
    60_000,
  );
  facts = { ...silent(), address: '10.0.0.1', version: 'v2' };
  await annotate({ later: '2' });
  await shows({ status: { k0sVersion: 'v2' } });
  expect(writes()).toEqual(['patch', 'update', 'patch', 'patch', 'update']);
});

test('a ControlNode that somebody deletes is created again', async () => {
  start();
  await shows(whole());
  const { uid } = (await read()).metadata;
  await cluster.admin.delete(controlNodes, silent().name);
  await vi.waitFor(
    async () => expect((await read().catch(() => undefined))?.metadata.uid).not.toBe(undefined),
    {
      timeout: 60_000,
    },
  );
  await shows(whole());
  expect((await read()).metadata.uid).not.toBe(uid);
});

test('a ControlNode of an older version is put right, and fields of others stay', async () => {
  await cluster.admin.create(controlNodes, {
    apiVersion: apiVersionOf(controlNodes),
    kind: controlNodes.kind,
    metadata: {
      name: silent().name,
      labels: { 'kubernetes.io/arch': 'arm64', pool: 'blue' },
      annotations: { [MODE_ANNOTATION]: 'controller+worker', theirs: 'kept' },
    },
  });
  start();
  await shows(whole());
  expect((await read()).metadata.labels).toEqual({ ...labels(), pool: 'blue' });
  expect((await read()).metadata.annotations).toEqual({
    [MODE_ANNOTATION]: 'controller',
    theirs: 'kept',
  });
});

test('the mode and the version of a ControlNode follow the service', async () => {
  start();
  await shows(whole());
  facts = {
    ...silent(),
    mode: 'controller+worker',
    nodeName: 'edge',
    address: '10.0.0.1',
    version: 'v2',
  };
  await annotate({ signal: 'done' });
  await shows({
    metadata: {
      labels: { 'kubernetes.io/hostname': 'edge' },
      annotations: { [MODE_ANNOTATION]: 'controller+worker' },
    },
    status: { k0sVersion: 'v2', addresses: [{ address: '10.0.0.1' }, { address: 'edge' }] },
  });
});

test('no ControlNode is written before the service has said what it is', async () => {
  facts = undefined;
  const object = start();
  await vi.waitFor(() => expect(object.isKnown).toBe(true), 60_000);
  expect(writes()).toEqual([]);
  facts = silent();
  await shows({ metadata: { labels: labels() } });
});
