/** Tests that command lines of k0s are distinguished from other command lines, and are read as k0s reads them. */
import { expect, test } from 'vitest';
import { readServiceArguments } from './find-services.ts';

const K0S = '/usr/local/bin/k0s';

test.each<[string, string[], object | undefined]>([
  ['a worker', [K0S, 'worker'], { isController: false }],
  ['a controller', [K0S, 'controller', '--enable-worker', '--single'], { isController: true }],
  ['a binary of any name', ['/opt/edge', 'worker'], { isController: false }],
  [
    'a script',
    ['/usr/bin/node', K0S, 'worker', '--status-socket', '/s'],
    { isController: false, statusSocket: '/s' },
  ],
  ['a flag of the program itself first', [K0S, '--debug', 'worker'], { isController: false }],
  ['another command', [K0S, 'status', '--status-socket', '/s'], undefined],
  ['a role further behind', ['/usr/bin/ssh', '-v', 'host', K0S, 'worker'], undefined],
  ['nothing', [], undefined],
  [
    'a socket',
    [K0S, 'worker', '--status-socket=/run/a b.sock'],
    { isController: false, statusSocket: '/run/a b.sock' },
  ],
  [
    'a data directory',
    [K0S, 'worker', '--data-dir', '/data'],
    { isController: false, dataDirectory: '/data' },
  ],
  [
    'the short form of the data directory',
    [K0S, 'worker', '-d', '/data'],
    { isController: false, dataDirectory: '/data' },
  ],
  [
    'the last of two data directories',
    [K0S, 'worker', '-d', '/a', '--data-dir=/b'],
    { isController: false, dataDirectory: '/b' },
  ],
  ['an empty value', [K0S, 'worker', '--data-dir='], { isController: false }],
  ['no value', [K0S, 'worker', '--data-dir'], { isController: false }],
  [
    'another flag with the same beginning',
    [K0S, 'worker', '--data-dir-mode', '0700', '--data-dir', '/b'],
    { isController: false, dataDirectory: '/b' },
  ],
])('whether a command line is that of the service of k0s: %s', (_name, argv, expected) => {
  expect(readServiceArguments(argv)).toEqual(expected);
});

test.each([
  ['--hostname-override=w-7', 'w-7'],
  ['--v=2 --hostname-override=w-7 --node-ip=10.0.0.7', 'w-7'],
  ['--hostname-override w-7', 'w-7'],
  ['--hostname-override="w-7"', 'w-7'],
  ["'--hostname-override=w-7'", 'w-7'],
  ['--v=2', undefined],
  ['', undefined],
])('the name within --kubelet-extra-args %j', (extra, hostnameOverride) => {
  const expected = { isController: false, ...(hostnameOverride && { hostnameOverride }) };
  expect(readServiceArguments([K0S, 'worker', `--kubelet-extra-args=${extra}`])).toEqual(expected);
  expect(readServiceArguments([K0S, 'worker', '--kubelet-extra-args', extra, '--debug'])).toEqual(
    expected,
  );
});
