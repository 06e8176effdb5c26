/** Shows which command lines are accepted, what the commands get, and the error for every other line. */

import { expect, test } from 'vitest';
import { COMMANDS } from '../../test/support/commands.ts';
import type { CommandSpec } from '../cli/program.ts';
import { runProgram } from '../cli/program.ts';
import { DEFAULT_POLICY } from '../engine/policy/rollout-policy.ts';
import { ERRORS, RefitError } from '../util/errors.ts';

interface Run {
  readonly called: unknown[];
  readonly written: string;
  readonly exitCode: number;
}

/** Runs one command line. Every command but `version` is replaced by one that returns `answer`. */
async function run(line: string, answer = 0): Promise<Run> {
  const called: unknown[] = [];
  let written = '';
  const recording = (spec: CommandSpec, path: string): CommandSpec => {
    const { run: real, commands = [], ...rest } = spec;
    const name = `${path}${spec.name}`;
    return {
      ...rest,
      commands: commands.map((each) => recording(each, `${name} `)),
      ...(real && {
        run:
          name === 'version'
            ? real
            : async (flags: object, { argument, values = [] }) => {
                called.push(name, ...(argument === undefined ? values : [argument]), flags);
                return await Promise.resolve(answer);
              },
      }),
    };
  };
  const exitCode = await runProgram(
    line.split(' '),
    COMMANDS.map((each) => recording(each, '')),
    {
      abort: new AbortController().signal,
      write: (text) => {
        written += text;
      },
    },
  );
  return { called, written, exitCode };
}

test.each<[string, string, object | string]>([
  ['status', 'status', { output: 'text' }],
  ['status -w -o json', 'status', { output: 'json', watch: true }],
  ['status --watch --output wide', 'status', { output: 'wide', watch: true }],
  [
    'status --kubeconfig a --context b --api-port 9443',
    'status',
    { output: 'text', kubeconfig: 'a', context: 'b', apiPort: 9443 },
  ],
  [
    'controller',
    'controller',
    { leaseDuration: 15_000, targetDeadline: DEFAULT_POLICY.targetDeadlineMs, logLevel: 'info' },
  ],
  [
    'controller --lease-duration 3s --target-deadline 0 --health-address :8080 --log-level debug',
    'controller',
    { leaseDuration: 3000, targetDeadline: Infinity, healthAddress: ':8080', logLevel: 'debug' },
  ],
  [
    'controller --target-deadline 0s',
    'controller',
    { leaseDuration: 15_000, targetDeadline: Infinity, logLevel: 'info' },
  ],
  [
    'controller --target-deadline 90m',
    'controller',
    { leaseDuration: 15_000, targetDeadline: 5_400_000, logLevel: 'info' },
  ],
  [
    'capi-extension --payload-url http://u/{version} --call-timeout 5s',
    'capi-extension',
    {
      payloadUrl: 'http://u/{version}',
      address: '127.0.0.1:9443',
      certDir: '/tmp/k8s-webhook-server/serving-certs',
      callTimeout: 5000,
      rollouts: 'owner',
      leaseDuration: 15_000,
      targetDeadline: DEFAULT_POLICY.targetDeadlineMs,
      logLevel: 'info',
    },
  ],
  ['why w1 --context b', 'why', 'w1'],
  ['preview', 'preview', { ready: true, output: 'text' }],
  ['preview -f plan.yaml -o json', 'preview', { ready: true, output: 'json', file: ['plan.yaml'] }],
  ['preview -f a.yaml -f b', 'preview', { ready: true, output: 'text', file: ['a.yaml', 'b'] }],
  ['pause', 'pause', {}],
  ['resume --plan plan/autopilot', 'resume', { plan: 'plan/autopilot' }],
  ['abort --reason wrong', 'abort', { reason: 'wrong' }],
  ['retry w1 --plan autopilot', 'retry', 'w1'],
  ['validate plan.yaml', 'validate', 'plan.yaml'],
  ['validate a b', 'validate', 'a'],
  ['kubeadm plan', 'kubeadm plan', { manifest: 'cluster.yaml', output: 'text' }],
  [
    'kubeadm apply -m other.yaml -y -o json --lease-duration 2s --api-port 16443',
    'kubeadm apply',
    { manifest: 'other.yaml', yes: true, output: 'json', leaseDuration: 2000, apiPort: 16_443 },
  ],
])('%s', async (line, command, given) => {
  const { called, exitCode } = await run(line, 4);
  expect(called[0]).toBe(command);
  expect(called[1]).toEqual(given);
  expect(exitCode).toBe(4);
});

test.each<[string, string]>([
  ['status one two', "too many arguments for 'status'. Expected 1 argument but got 2: one, two."],
  ['status --watsch', "unknown option '--watsch' (Did you mean --watch?)"],
  [
    'status -o xml',
    "option '-o, --output <form>' argument 'xml' is invalid. Allowed choices are text, wide, json, yaml.",
  ],
  [
    'serve . --url x',
    "option '--url <url>' argument 'x' is invalid. write a URL, such as https://updates.example.com",
  ],
  [
    'controller --health-address 8080',
    "option '--health-address <host:port>' argument '8080' is invalid. use host:port, such as 127.0.0.1:8080",
  ],
  [
    'controller --ui-address :99999',
    "option '--ui-address <host:port>' argument ':99999' is invalid. use host:port, such as 127.0.0.1:8080",
  ],
  ['status --kubeconfig', "option '--kubeconfig <file>' argument missing"],
  ...['0', '65536', '1.5', 'https', ''].map((port): [string, string] => [
    `status --api-port ${port}`,
    `option '--api-port <port>' argument '${port}' is invalid. a port is a number from 1 to 65535`,
  ]),
  [
    'controller --lease-duration 1500ms',
    "option '--lease-duration <time>' argument '1500ms' is invalid. write whole seconds, such as 15s",
  ],
  [
    'controller --lease-duration 90',
    "option '--lease-duration <time>' argument '90' is invalid. a duration is a number above zero with a unit (ms, s, m or h), such as 90s",
  ],
  [
    'controller --target-deadline 90',
    "option '--target-deadline <time>' argument '90' is invalid. write 0, or a number with a unit (ms, s, m or h), such as 90s",
  ],
  [
    'controller --log-level loud',
    "option '--log-level <level>' argument 'loud' is invalid. Allowed choices are debug, info, warn, error.",
  ],
  ...[
    'foo',
    'ftp://m.example.com/{version}',
    'https://m.example.com/k0s',
    'https:///{version}',
    'https://m/{version}/{platform}',
  ].flatMap((url) =>
    ['payload', 'checksum'].map((what): [string, string] => [
      `capi-extension --${what}-url ${url}`,
      `option '--${what}-url <template>' argument '${url}' is invalid. write an http or https URL that contains {version}; it may also contain {os}, {arch} and {procedure}, such as https://mirror.example.com/{version}/k0s`,
    ]),
  ),
  ...['etcd', 'etcd,', ',kuberouter', 'etcd,kuberouter,more'].map((info): [string, string] => [
    `controller --cluster-info ${info}`,
    `option '--cluster-info <storage,network>' argument '${info}' is invalid. write the storage and the network, such as etcd,kuberouter`,
  ]),
  [
    'controller --exclude-from-plans workers',
    "option '--exclude-from-plans <roles>' argument 'workers' is invalid. write controller, worker, or controller,worker",
  ],
  [
    'install controller --image ',
    "option '--image <name>' argument '' is invalid. write an image, such as registry.example.com/refit:1.2.3",
  ],
  ['install capi', "required option '--payload-url <template>' not specified"],
  ['capi-extension', "required option '--payload-url <template>' not specified"],
  ['start --for 2h', "required option '--now' not specified"],
  ['start --now', "required option '--for <time>' not specified"],
])('refit %s: one line, exit code 2', async (line, message) => {
  const error: unknown = await run(line).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(RefitError);
  const { code, line: told, exitCode } = error as RefitError;
  expect({ code, told, exitCode }).toEqual({
    code: 'REFIT_USAGE',
    told: `REFIT_USAGE: ${message} (${ERRORS.REFIT_USAGE.hint})`,
    exitCode: 2,
  });
});

test.each([
  ['upgrade', 'version', 'the new version, such as v1.37.2+k0s.0'],
  ['upgrade --yes', 'version', 'the new version, such as v1.37.2+k0s.0'],
  ['hold', 'node', 'name of the Node or ControlNode, or machine/NAME'],
  ['validate', 'file', 'files to check, folders of such files, or - for standard input'],
  ['notify test', 'receiver', 'the receiver, as NAME or POLICY/NAME'],
])(
  'refit %s without its argument: one line that says what belongs there',
  async (line, argument, meaning) => {
    const path = line.replace(' --yes', '');
    await expect(run(line)).rejects.toMatchObject({
      line: `REFIT_USAGE: missing required argument '${argument}' (write refit ${path} <${argument}>: ${meaning})`,
      exitCode: 2,
    });
  },
);

test('refit statu: one line that says how to list the commands, exit code 2', async () => {
  await expect(run('statu')).rejects.toMatchObject({
    line: "REFIT_USAGE: unknown command 'statu' (Did you mean status?) (run `refit --help`)",
    exitCode: 2,
  });
});

test.each(['--help', 'status --help', 'help controller', '-h'])(
  'refit %s is no error',
  async (line) => {
    const { written, exitCode, called } = await run(line);
    expect(written).toContain('Usage: refit');
    expect({ exitCode, called }).toEqual({ exitCode: 0, called: [] });
  },
);

test('--version prints nothing but the version', async () => {
  expect((await run('--version')).written).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test('version', async () => {
  expect((await run('version')).written).toMatch(/^refit \d+\.\d+\.\d+\n$/);
});

test('what a command throws is not taken for a usage error', async () => {
  const thrown = new Error('odd');
  const fail = async (): Promise<number> => await Promise.reject(thrown);
  const commands = COMMANDS.map((each) => ({ ...each, run: fail }));
  const call = { abort: new AbortController().signal, write: () => undefined };
  await expect(runProgram(['status'], commands, call)).rejects.toBe(thrown);
});

test.each(['--to v1.36.3', '--namespace prod', '--cluster blue'])(
  'preview %s lacks what belongs to it',
  async (flags) => {
    const call = { abort: new AbortController().signal, write: () => undefined };
    await expect(runProgram(['preview', ...flags.split(' ')], COMMANDS, call)).rejects.toThrow(
      'expected the name of a Cluster and a version',
    );
  },
);
