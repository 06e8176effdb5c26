/**
 * Tests that flags take precedence over found places, that found places take precedence over the defaults, and that a
 * doubt is logged.
 */
import { expect, test, vi } from 'vitest';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { type LogFields, silentLogger } from '../../util/log.ts';
import type { FoundService } from './find-services.ts';
import { type PlaceFlags, type ServicePlaces, servicePlaces } from './service-place.ts';
import type { ServiceStatus } from './status-socket.ts';

const DEFAULTS = { statusSocket: '/run/k0s/status.sock', dataDirectory: '/var/lib/k0s' };
const service = (pid: number, more: Partial<FoundService> = {}): FoundService => ({
  pid,
  ...DEFAULTS,
  ...more,
});

interface Host {
  services: FoundService[];
  /** The PID that each status socket reports. */
  sockets: Record<string, number>;
}

interface Scene {
  readonly places: ServicePlaces;
  /** The sockets that were asked, in order. */
  readonly asked: string[];
  /** The fields of the log entries. */
  readonly said: LogFields[];
  readonly clock: FakeClock;
}

function placesOn(host: Host, flags: PlaceFlags = {}): Scene {
  const clock = new FakeClock();
  const said: LogFields[] = [];
  const asked: string[] = [];
  const askStatus = async (socket: string): Promise<ServiceStatus> => {
    asked.push(socket);
    const pid = host.sockets[socket];
    return await (pid === undefined
      ? Promise.reject(new Error('ENOENT'))
      : Promise.resolve({ pid, version: 'v1' }));
  };
  const log = {
    ...silentLogger,
    info: (_message: string, fields: LogFields = {}) => void said.push(fields),
  };
  return {
    places: servicePlaces({
      flags,
      findServices: () => host.services,
      askStatus,
      clock,
      log,
    }),
    asked,
    said,
    clock,
  };
}

const CUSTOM = { statusSocket: '/srv/k0s.sock', dataDirectory: '/srv/k0s' };

test.each<[string, Host, PlaceFlags, object, string]>([
  [
    'nothing runs',
    { services: [], sockets: {} },
    {},
    DEFAULTS,
    'no process looks like the service',
  ],
  [
    'nothing runs, but a flag tells',
    { services: [], sockets: {} },
    { dataDirectory: '/f' },
    { ...DEFAULTS, dataDirectory: '/f' },
    'no process',
  ],
  [
    'the agent finds status socket and data directory in the command line of a running service',
    { services: [service(7, CUSTOM)], sockets: { '/srv/k0s.sock': 7 } },
    {},
    CUSTOM,
    'command line of PID 7',
  ],
  [
    'it does not answer yet',
    { services: [service(7, CUSTOM)], sockets: {} },
    {},
    CUSTOM,
    'command line of PID 7',
  ],
  [
    'a flag wins over what is found',
    { services: [service(7, CUSTOM)], sockets: { '/srv/k0s.sock': 7 } },
    { dataDirectory: '/flag' },
    { ...CUSTOM, dataDirectory: '/flag' },
    'PID 7',
  ],
  [
    'something else was started with the same words',
    {
      services: [service(5, { dataDirectory: '/other' }), service(7, CUSTOM)],
      sockets: { '/srv/k0s.sock': 7, [DEFAULTS.statusSocket]: 9 },
    },
    {},
    CUSTOM,
    'PID 7',
  ],
  [
    'two of them',
    {
      services: [service(7, CUSTOM), service(8)],
      sockets: { '/srv/k0s.sock': 7, [DEFAULTS.statusSocket]: 8 },
    },
    {},
    DEFAULTS,
    'several processes may be the service (PIDs 7, 8)',
  ],
  [
    'two of them, and a flag that tells which',
    {
      services: [service(7, CUSTOM), service(8)],
      sockets: { '/srv/k0s.sock': 7, [DEFAULTS.statusSocket]: 8 },
    },
    { statusSocket: '/srv/k0s.sock' },
    CUSTOM,
    'PID 7',
  ],
  [
    'the agent takes the host name and the hostname override from the k0s process',
    { services: [service(7, { hostnameOverride: 'w-7', hostname: 'edge' })], sockets: {} },
    {},
    { ...DEFAULTS, hostnameOverride: 'w-7', hostname: 'edge' },
    'PID 7',
  ],
])('the place of the service: %s', async (_name, host, flags, expected, why) => {
  const { places, said } = placesOn(host, flags);
  expect(await places.search()).toEqual(expected);
  expect(places.current).toEqual(expected);
  expect(said).toMatchObject([{ ...expected, why: expect.stringContaining(why) as string }]);
});

test('before anybody looked for the service, flags and defaults hold', () => {
  const { places } = placesOn(
    { services: [service(7, CUSTOM)], sockets: {} },
    { dataDirectory: '/flag' },
  );
  expect(places.current).toEqual({ ...DEFAULTS, dataDirectory: '/flag' });
});

test('the agent finds a service again after a restart with other flags, and reports it once', async () => {
  const host: Host = { services: [service(7)], sockets: { [DEFAULTS.statusSocket]: 7 } };
  const { places, said, clock } = placesOn(host);
  const later = async (): Promise<object> => {
    await clock.advance(1_000);
    return await places.search();
  };
  const changed = vi.fn();
  places.onChange(changed);
  await places.search();
  await later();
  expect(changed).not.toHaveBeenCalled();
  expect(said).toHaveLength(1);
  host.services = [];
  expect(await later()).toEqual(DEFAULTS);
  host.services = [service(8, CUSTOM)];
  host.sockets = { '/srv/k0s.sock': 8 };
  expect(await places.search()).toEqual(DEFAULTS);
  expect(await later()).toEqual(CUSTOM);
  expect(changed).toHaveBeenCalledTimes(1);
  host.services = [];
  expect(await later()).toEqual(CUSTOM);
});

test('at the place that one proved, another is believed unasked, unless two may be the service', async () => {
  const host: Host = {
    services: [service(7)],
    sockets: { [DEFAULTS.statusSocket]: 7, '/srv/k0s.sock': 9 },
  };
  const { places, asked, clock } = placesOn(host, { dataDirectory: '/flag' });
  const sockets: number[] = [];
  for (const services of [
    [service(7)],
    [service(7)],
    [service(8)],
    [service(8), service(9, CUSTOM)],
  ]) {
    host.services = services;
    await clock.advance(1_000);
    await places.search();
    sockets.push(asked.length);
  }
  expect(sockets).toEqual([1, 1, 1, 3]);
  expect(places.current).toEqual({ ...CUSTOM, dataDirectory: '/flag' });
});

test.each([
  ['often while it is not found', { services: [], sockets: {} }, 13],
  [
    'seldom once it has told its place',
    { services: [service(7)], sockets: { [DEFAULTS.statusSocket]: 7 } },
    2,
  ],
])('the service is looked for %s', async (_name, host, expected) => {
  let looks = 0;
  const { places, clock } = placesOn({
    ...host,
    get services() {
      looks++;
      return host.services;
    },
  });
  const stop = new AbortController();
  const looking = places.keepSearching(stop.signal);
  await clock.advance(60_000);
  stop.abort();
  await looking;
  expect(looks).toBe(expected);
  expect(clock.pending).toBe(0);
});

test('a process table that cannot be read changes nothing', async () => {
  const said: LogFields[] = [];
  const broken = servicePlaces({
    flags: {},
    findServices: () => {
      throw new Error('EACCES');
    },
    askStatus: async () => await Promise.reject(new Error('none')),
    clock: new FakeClock(),
    log: { ...silentLogger, info: (_message, fields = {}) => void said.push(fields) },
  });
  expect(await broken.search()).toEqual(DEFAULTS);
  expect(said).toMatchObject([{ why: 'EACCES' }]);
});
