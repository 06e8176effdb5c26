/** Tests that each `refit` process reports in one line why it cannot work, and continues as soon as it can work. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApiServer } from '../../sandbox/api-server/api-server.ts';
import { REFIT } from '../../sandbox/refit.ts';
import { plans } from '../../src/api/autopilot/plan.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { run } from '../../tools/controlplane/run.ts';
import { startTcpProxy } from '../faults/tcp-proxy.ts';
import { buildPlan } from '../support/builders/plans.ts';
import { WHOLE } from '../support/whole.ts';
import { controlPlane, expiredKubeconfig, installKinds, kubeconfigFor } from './control-plane.ts';
import { kubeconfigVia, variantFor } from './kubeconfig-variants.ts';
import { RefitProcess, type RefitResult, runRefit, runRefitProcess } from './refit-process.ts';

const PATIENCE = { timeout: 150_000, interval: 150 };
let directory = '';

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-cli-'));
  await installKinds();
});
afterAll(async () => await rm(directory, { recursive: true }));

/** Removes the lines of the log. A controller also logs which features it cannot use. */
const withoutLog = (lines: readonly string[]): string[] =>
  lines.filter((line) => !line.startsWith('{'));

/** The commands that need an API server, each with its kubeconfig. */
function commands(kubeconfig: string): string[][] {
  const place = [
    '--object',
    'controlnode',
    '--name',
    'cli-c1',
    '--state-dir',
    join(directory, 'agent'),
    '--run-dir',
    directory,
  ];
  const agent = ['agent', ...place, '--log-level', 'error'];
  const all = [
    ['status'],
    ['why'],
    ['preview'],
    ['pause'],
    ['retry', 'cli-w1'],
    ['controller'],
    agent,
  ];
  return all.map((args) => [...args, '--kubeconfig', kubeconfig]);
}

const FAILURES: readonly (readonly [string, () => Promise<string>, number, string])[] = [
  [
    'nothing listens there',
    async () => await kubeconfigVia(directory, 'viewer', `https://127.0.0.1:${await freePort()}`),
    3,
    'REFIT_UNREACHABLE: cannot reach https://127.0.0.1:',
  ],
  [
    'a name that nobody knows',
    async () => await kubeconfigVia(directory, 'viewer', 'https://api.invalid:6443'),
    3,
    'REFIT_UNREACHABLE: cannot reach https://api.invalid:6443: the host name does not resolve',
  ],
  ['an expired certificate', expiredKubeconfig, 3, 'REFIT_TLS: https://127.0.0.1:'],
  [
    'a server that is not of this cluster',
    async () =>
      await variantFor(directory, 'viewer', ({ clusters }) => {
        for (const { cluster } of clusters)
          Object.assign(cluster, { 'certificate-authority-data': undefined });
      }),
    3,
    'REFIT_TLS: cannot reach https://127.0.0.1:',
  ],
  [
    'a user without rights',
    async () => await kubeconfigFor({ node: 'cli-nobody' }),
    4,
    'REFIT_FORBIDDEN: https://',
  ],
  [
    'a kubeconfig without context',
    async () =>
      await variantFor(directory, 'viewer', (kubeconfig) => delete kubeconfig['current-context']),
    2,
    'REFIT_KUBECONFIG: ',
  ],
  [
    'no kubeconfig',
    async () => await Promise.resolve(join(directory, 'none')),
    2,
    'REFIT_KUBECONFIG: cannot read ',
  ],
  [
    'a file that is something else',
    async () => await Promise.resolve('package.json'),
    2,
    'REFIT_KUBECONFIG: ',
  ],
];

/** The indices of failures that are tested with separate processes. There is one for each exit code. */
const AS_PROCESSES = [0, 4, 6];

/** Commands that keep running always run as separate processes. */
async function outcomeOf(args: readonly string[], isProcess: boolean): Promise<RefitResult> {
  const keepsRunning = args[0] === 'agent' || args[0] === 'controller';
  return await (isProcess || keepsRunning ? runRefitProcess : runRefit)(...args);
}

/**
 * Tests every failure with some of the commands, which share one client, and with the agent, which has a different
 * client.
 */
test.each(FAILURES.map((failure, index) => [...failure, index] as const))(
  '%s: each command that is tried says so in one line',
  async (_name, kubeconfig, code, begin, nth) => {
    const path = await kubeconfig();
    // The agent waits for a server that may become available again, see the next test.
    const isPatient = begin.startsWith('REFIT_UNREACHABLE') || begin.startsWith('REFIT_TLS');
    const some = commands(path).filter(
      ([name], index) => WHOLE || name === 'agent' || (index + nth) % 3 === 0,
    );
    const ending = some.filter(([name]) => name !== 'agent' || !isPatient);
    const results = await Promise.all(
      ending.map(async (args) => await outcomeOf(args, AS_PROCESSES.includes(nth))),
    );
    const begins = results.map((result) => ({
      ...result,
      stderr: withoutLog(result.stderr).map((line) => line.slice(0, begin.length)),
    }));
    expect(begins).toEqual(results.map(() => ({ code, stdout: [], stderr: [begin] })));
  },
);

test.each<[string, () => Promise<string>, string]>([
  [
    'nothing listens there',
    async () => await kubeconfigVia(directory, 'viewer', `https://127.0.0.1:${await freePort()}`),
    'REFIT_UNREACHABLE: cannot reach https://127.0.0.1:',
  ],
  ['an expired certificate', expiredKubeconfig, 'REFIT_TLS: https://127.0.0.1:'],
])('%s: an agent says so and waits', async (_name, kubeconfig, begin) => {
  const place = [
    '--object',
    'controlnode',
    '--name',
    'cli-c1',
    '--state-dir',
    join(directory, 'waiting'),
    '--run-dir',
    directory,
  ];
  await using agent = new RefitProcess('agent', ...place, '--kubeconfig', await kubeconfig());
  const said = (): string[] => agent.stderr.filter((line) => line.includes(begin));
  await expect.poll(() => said().length, PATIENCE).toBeGreaterThan(1);
  expect(await agent.stop('SIGTERM')).toBe(0);
});

test('an API server without our kinds: every command says what to apply; an agent waits for them', async () => {
  const server = await startApiServer();
  try {
    const path = await kubeconfigVia(directory, 'viewer', server.url);
    const asking = commands(path).filter(([name]) => name !== 'agent');
    const results = await Promise.all(
      asking.map(async (args) => await outcomeOf(args, args[0] === 'status')),
    );
    for (const { code, stdout, stderr: all } of results) {
      const stderr = withoutLog(all);
      expect({ code, stdout, lines: stderr.length }).toEqual({ code: 1, stdout: [], lines: 1 });
      expect(stderr[0]).toMatch(/^REFIT_NO_CRD: .*`refit install controller` prints them/);
    }
  } finally {
    await server.stop();
  }
});

test('a controller that lost its API server leads again when the API server is back', async () => {
  const proxy = await startTcpProxy({ target: { host: '127.0.0.1', port: controlPlane().port } });
  const kubeconfig = await kubeconfigVia(
    directory,
    'controller',
    `https://127.0.0.1:${proxy.port}`,
  );
  const admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  const controller = new RefitProcess(
    'controller',
    '--kubeconfig',
    kubeconfig,
    '--lease-duration',
    '3s',
  );
  const count = (message: string): number =>
    controller.stderr.filter((line) => line.includes(`"msg":"${message}"`)).length;
  try {
    await expect.poll(() => count('leading'), PATIENCE).toBe(1);
    proxy.partition();
    await expect.poll(() => count('no longer leading'), PATIENCE).toBe(1);
    const { metadata, ...plan } = buildPlan({ id: '' });
    await admin.create(plans, { ...plan, metadata: { name: metadata.name } });
    proxy.heal();
    await expect.poll(() => count('leading'), PATIENCE).toBe(2);
    await expect
      .poll(async () => (await admin.get(plans, 'autopilot')).status?.state, PATIENCE)
      .toBe('Warning');
    expect(await controller.stop('SIGTERM')).toBe(0);
    expect(controller.stderr.filter((line) => !/^\{"time":"[^"]+","level":"/.test(line))).toEqual(
      [],
    );
  } finally {
    await controller.stop('SIGKILL');
    await admin.delete(plans, 'autopilot').catch(() => undefined);
    admin.close();
    await proxy.stop();
  }
});

test('usage: one line, from every command', async () => {
  const lines = [
    ['stat'],
    ['status', '--watsch'],
    ['controller', '--lease-duration', '1'],
    ['agent', '--nam', 'a'],
    ['validate'],
  ];
  const results = await Promise.all(lines.map(async (args) => await runRefitProcess(...args)));
  for (const { code, stdout, stderr } of results) {
    expect({ code, stdout, lines: stderr.length }).toEqual({ code: 2, stdout: [], lines: 1 });
    expect(stderr[0]).toMatch(/^REFIT_USAGE: /);
  }
});

test.each<[string, string[], string]>([
  [
    'a context that is not there',
    ['status', '--context', 'none'],
    'context "none" is not defined (defined: refit) (choose another with --context, or correct current-context)',
  ],
  [
    'a port that is none',
    ['why', '--api-port', '0'],
    'a port is a number from 1 to 65535 (run the same command with',
  ],
  [
    'a port that is taken',
    ['controller', '--health-address', `127.0.0.1:PORT`],
    '(choose another address, or stop the process that uses it)',
  ],
])('%s: the advice is about that', async (_name, args, advice) => {
  const path = await kubeconfigFor('controller');
  const taken = args.map((arg) => arg.replace('PORT', String(controlPlane().port)));
  const { code, stderr } = await runRefitProcess(...taken, '--kubeconfig', path);
  expect(code).toBe(2);
  expect(stderr.at(-1)).toContain(advice);
});

test('a file without a Plan: one line says what each of its documents is', async () => {
  const { code, stdout, stderr } = await runRefitProcess('validate', 'deploy/rbac.yaml');
  expect([code, stdout]).toEqual([2, []]);
  const [head, first] = stderr;
  expect(head).toBe(
    `REFIT_FILE: ${stderr.length - 1} errors (correct the fields; \`kubectl explain\` shows every field of a kind)`,
  );
  expect(first).toMatch(/^ {2}deploy\/rbac\.yaml: document 1: holds a Namespace of v1, expected /);
});

test('requested output goes to standard output and is no error', async () => {
  const lines = [
    [],
    ['--help'],
    ['status', '--help'],
    ['help', 'controller'],
    ['help', 'agent'],
    ['agent', '--help'],
    ['version'],
  ];
  const results = await Promise.all(lines.map(async (args) => await runRefitProcess(...args)));
  for (const { code, stdout, stderr } of results) {
    expect({ code, stderr }).toEqual({ code: 0, stderr: [] });
    expect(stdout[0]).toMatch(/^(Usage: refit|refit \d)/);
  }
});

test('kubectl finds refit as its plugin, with filters and all', async () => {
  await writeFile(
    join(directory, 'kubectl-refit'),
    `#!/bin/sh\nexec ${process.execPath} ${REFIT} "$@"\n`,
    {
      mode: 0o755,
    },
  );
  const environment = {
    PATH: `${directory}:${process.env['PATH']}`,
    KUBECONFIG: await kubeconfigFor('viewer'),
  };
  const plugin = async (...args: readonly string[]) =>
    await run(controlPlane().kubectl, ['refit', ...args], { environment });
  expect(await plugin('version')).toMatchObject({
    ok: true,
    stdout: expect.stringMatching(/^refit \d/) as string,
  });
  const status = await plugin('status', '-n', 'none', '--dialect', 'cattle');
  // Other tests may have plans in this cluster.
  const none =
    /^REFIT_CONTROL: there is no plan of dialect cattle in namespace none(?:; there is | \()/;
  expect(status.stdout + status.stderr).toMatch(none);
});
