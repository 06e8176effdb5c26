/** Tests which value is used if flags, the service and the host give different values for a controller. */
import { expect, test } from 'vitest';
import { silentLogger } from '../../util/log.ts';
import type { AgentOptions } from '../options.ts';
import type { ServiceStatus } from '../service/status-socket.ts';
import { describeController } from './keep-registered.ts';

const NO_FLAGS: AgentOptions['controller'] = { mode: undefined, apiAddress: undefined };
const KNOWN = { type: 'InternalIP', address: '10.0.0.9' };

async function describe(
  flags: Partial<AgentOptions['controller']>,
  status?: Partial<ServiceStatus>,
  hasAddress = true,
): ReturnType<typeof describeController> {
  return await describeController({
    name: 'c1',
    options: { controller: { ...NO_FLAGS, ...flags } },
    places: { current: { statusSocket: '/s', dataDirectory: '/d', hostnameOverride: 'Edge-1' } },
    object: {
      newest: { metadata: { name: 'c1' }, status: { addresses: hasAddress ? [KNOWN] : [] } },
    },
    askStatus: async () =>
      await (status
        ? Promise.resolve({ version: 'v1', pid: 1, ...status })
        : Promise.reject(new Error('ENOENT'))),
    log: silentLogger,
  });
}

test.each<
  [
    string,
    Partial<AgentOptions['controller']>,
    Partial<ServiceStatus> | undefined,
    object | undefined,
  ]
>([
  ['none if neither a flag nor the service tells the mode', {}, undefined, undefined],
  ['a service that does not say its mode', {}, {}, undefined],
  ['a controller', {}, { workloads: false }, { mode: 'controller', nodeName: 'c1', version: 'v1' }],
  [
    'one with workloads',
    {},
    { workloads: true },
    { mode: 'controller+worker', nodeName: 'edge-1', version: 'v1' },
  ],
  [
    'from the flag alone',
    { mode: 'controller+worker' },
    undefined,
    { mode: 'controller+worker', nodeName: 'edge-1' },
  ],
  [
    'the flag wins',
    { mode: 'controller' },
    { workloads: true },
    { mode: 'controller', nodeName: 'c1', version: 'v1' },
  ],
  [
    'an address',
    {},
    { workloads: false, apiAddress: '10.0.0.1' },
    { address: '10.0.0.1', mode: 'controller' },
  ],
  [
    'the address of the flag wins',
    { apiAddress: '10.0.0.2' },
    { workloads: false, apiAddress: '10.0.0.1' },
    { address: '10.0.0.2' },
  ],
])('the registration of a controller: %s', async (_name, flags, status, expected) => {
  const facts = await describe(flags, status);
  if (expected === undefined) expect(facts).toBeUndefined();
  else expect(facts).toMatchObject({ name: 'c1', ...expected });
  expect(facts?.version).toBe(status?.workloads === undefined ? undefined : 'v1');
});

test('the platform is called as in Go', async () => {
  const arch = new Map([
    ['x64', 'amd64'],
    ['arm64', 'arm64'],
  ]).get(process.arch);
  expect(await describe({}, { workloads: false })).toMatchObject({
    os: process.platform,
    ...(arch && { arch }),
  });
});

test('a name is no address, and one that is known is not replaced by a guess', async () => {
  expect(await describe({}, { workloads: false, apiAddress: 'c1.example.com' })).not.toHaveProperty(
    'address',
  );
  const guess = (await describe({}, { workloads: false }, false))?.address;
  expect(guess).not.toBe('127.0.0.1');
});
