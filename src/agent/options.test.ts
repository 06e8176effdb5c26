/** Tests the agent's flags: the defaults, all flags together, and one clear line for each mistake. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { RefitError } from '../util/errors.ts';
import { AGENT_HELP } from './flags.ts';
import { readFlagsFile } from './flags-file.ts';
import { parseAgentOptions } from './options.ts';

test('an agent without options has the limits of k0s, and finds out everything else', () => {
  expect(parseAgentOptions([])).toEqual({
    kubeconfig: undefined,
    object: 'node',
    procedure: 'k0s',
    kubeadm: {},
    configurable: [],
    name: undefined,
    place: {},
    controller: { mode: undefined, apiAddress: undefined },
    binary: undefined,
    stateDirectory: '/var/lib/refit',
    runDirectory: process.getuid?.() === 0 ? '/run/refit' : '/var/lib/refit',
    limits: {
      maxBytes: 1024 ** 3,
      reserveBytes: 128 * 1024 ** 2,
      totalMs: 6 * 3_600_000,
      stallMs: 60_000,
    },
    times: { restartTimeoutMs: 90_000, soakMs: 5_000, readyTimeoutMs: 120_000 },
    veto: {
      requireSha256: false,
      requireHttps: false,
      allowUnverified: false,
      allowedHosts: undefined,
      lowestVersion: undefined,
      refuseDowngrade: false,
      allowCgroupV1: false,
      maxSignalAgeMs: 7 * 24 * 3_600_000,
    },
    excluded: false,
    beside: 'observe',
    logLevel: 'info',
  });
});

test.each([
  [
    ['--procedure', 'kubeadm', '--object', 'controlnode'],
    '--procedure kubeadm works on a Node: leave out --object',
  ],
  [
    ['--exclude-from-plans', 'workers'],
    '--exclude-from-plans workers is none of controller, worker',
  ],
  [
    ['--exclude-from-plans', 'worker', '--procedure', 'kubeadm'],
    '--exclude-from-plans works with Plans of k0s only',
  ],
  [['--kubeadm-config', '/x'], '--kubeadm-config needs --procedure kubeadm'],
  [
    ['--node-configuration', '/etc/a,/etc/../b'],
    '--node-configuration /etc/../b: expected user:NAME, kubelet with',
  ],
  [
    ['--node-configuration', '/etc/kubernetes'],
    '--node-configuration /etc/kubernetes: expected user:NAME, kubelet with',
  ],
  [
    ['--node-configuration', 'kubelet'],
    '--node-configuration kubelet: expected user:NAME, kubelet with --procedure kubeadm',
  ],
  [
    ['--node-configuration', '/etc/a', '--object', 'controlnode'],
    '--node-configuration works on a Node',
  ],
])('the options %j are refused', (args, message) => {
  expect(() => parseAgentOptions(args)).toThrow(message);
});

test('every flag that help names is taken', () => {
  const named = [...AGENT_HELP.matchAll(/^ {2}--([a-z0-9-]+) +(<)?/gm)];
  // `--exclude-from-plans` works only with k0s, and other flags work only with kubeadm.
  const flags = named.filter(([, flag]) => flag !== 'exclude-from-plans');
  const values: Record<string, string> = {
    object: 'node',
    procedure: 'kubeadm',
    mode: 'controller+worker',
    'api-address': 'fd00::1',
    'log-level': 'debug',
    'max-download-bytes': '5',
    'disk-reserve': '7',
    soak: '250ms',
    'unverified-downloads': 'allow',
    'allowed-hosts': 'a,*.b',
    'lowest-version': 'v1.2.3',
    'max-signal-age': '250ms',
    'beside-k0s': 'replace',
  };
  const args = flags.flatMap(([, flag = '', takesValue]) => {
    const value = values[flag] ?? (flag.endsWith('timeout') ? '250ms' : '/x');
    return takesValue === undefined ? [`--${flag}`] : [`--${flag}`, value];
  });
  expect(parseAgentOptions(args)).toEqual({
    kubeconfig: '/x',
    object: 'node',
    procedure: 'kubeadm',
    kubeadm: { config: '/x' },
    configurable: ['/x'],
    name: '/x',
    place: { statusSocket: '/x', dataDirectory: '/x' },
    controller: { mode: 'controller+worker', apiAddress: 'fd00::1' },
    binary: '/x',
    stateDirectory: '/x',
    runDirectory: '/x',
    limits: {
      maxBytes: 5,
      reserveBytes: 7,
      allowInsecureRedirect: true,
      totalMs: 250,
      stallMs: 250,
    },
    times: { restartTimeoutMs: 250, soakMs: 250, readyTimeoutMs: 250 },
    veto: {
      requireSha256: true,
      requireHttps: true,
      allowUnverified: true,
      allowedHosts: ['a', '*.b'],
      lowestVersion: 'v1.2.3',
      refuseDowngrade: true,
      allowCgroupV1: true,
      maxSignalAgeMs: 250,
    },
    excluded: false,
    beside: 'replace',
    logLevel: 'debug',
  });
});

test.each<[string, string, boolean]>([
  ['node', 'worker', true],
  ['node', 'controller', false],
  ['controlnode', 'controller', true],
  ['controlnode', 'worker', false],
  ['controlnode', 'controller,worker', true],
])(
  'an agent with --object %s and --exclude-from-plans %s excludes its host: %j',
  (object, roles, excluded) => {
    const options = parseAgentOptions(['--object', object, '--exclude-from-plans', roles]);
    expect(options?.excluded).toBe(excluded);
  },
);

test('no soak is a choice, and relative paths are those of whoever calls', () => {
  const paths = [
    '--status-socket',
    's.sock',
    '--data-dir',
    'data',
    '--state-dir',
    'state',
    '--run-dir',
    'run',
  ];
  const options = parseAgentOptions(['--soak', '0', ...paths]);
  expect(options?.times.soakMs).toBe(0);
  expect(parseAgentOptions(['--soak', '0s', ...paths])?.times.soakMs).toBe(0);
  expect(options).toMatchObject({ stateDirectory: resolve('state'), runDirectory: resolve('run') });
  expect(options?.place).toEqual({
    statusSocket: resolve('s.sock'),
    dataDirectory: resolve('data'),
  });
});

test('both options for help print the help', () => {
  expect(parseAgentOptions(['--help'])).toBeUndefined();
  expect(parseAgentOptions(['-h'])).toBeUndefined();
});

test.each([
  [['--object', 'pod'], '--object pod is none of node, controlnode'],
  [['--restart-timeout', '90'], '--restart-timeout 90 is not a time'],
  [
    ['--restart-timeout', '99999999999h'],
    '--restart-timeout 99999999999h is too long: the longest time is 2562047h',
  ],
  [['--stall-timeout', '0s'], '--stall-timeout 0s is not a time'],
  [['--max-download-bytes', '1.5'], '--max-download-bytes 1.5 is not a whole number'],
  [['--max-download-bytes', '0'], '--max-download-bytes 0 is not a whole number'],
  [['--mode', 'worker'], '--mode worker is none of controller, controller+worker'],
  [['--api-address', 'c1.example.com'], '--api-address c1.example.com is not an IP address'],
  [['--soak', '5'], '--soak 5 is not a time: write 0, or a number with ms, s, m or h, such as 90s'],
  [['--log-level', 'loud'], '--log-level loud is none of'],
  [['--surprise'], "Unknown option '--surprise'"],
  [['--name', ''], '--name is empty: give it a value, or leave it out'],
  [['--state-dir='], '--state-dir is empty'],
  [['--name'], "Option '--name <value>' argument missing"],
  [['extra'], "Unexpected argument 'extra'"],
])('the options %j are refused in one line', (args, message) => {
  const error = failureOf(args);
  expect(error.code).toBe('REFIT_USAGE');
  expect(error.message).toContain(message);
  expect(error.line).not.toContain('\n');
});

test('the error about a misspelt flag in a file names the file', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'refit-flags-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  const file = join(directory, 'agent.yaml');
  await writeFile(file, 'soak: 1s\nsoakk: 1s\n', { mode: 0o600 });
  await expect(readFlagsFile(file)).rejects.toThrow(`cannot use ${file}: Unknown option '--soakk'`);
});

function failureOf(args: readonly string[]): RefitError {
  try {
    parseAgentOptions(args);
  } catch (error) {
    if (error instanceof RefitError) return error;
  }
  throw new Error('no RefitError');
}
