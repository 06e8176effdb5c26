/**
 * Tests `npm run testenv`: the cluster works while the command runs, nothing is left after its end, and each usage
 * error is reported in one line.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { run } from '../../tools/controlplane/run.ts';
import { processesNaming } from './processes.ts';

const COMMAND = join(import.meta.dirname, '..', '..', 'tools', 'testenv.ts');

interface Running {
  readonly process: ChildProcess;
  /** Its output so far. */
  readonly output: () => string;
  /** Its exit code. */
  readonly ended: Promise<unknown>;
}

const started: Running[] = [];
let temporary: string;

beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), 'refit-command-'));
});

/** Starts the command. Its temporary files are below `temporary`, so that a test can check that no file is left. */
function start(...args: string[]): Running {
  const env = { ...process.env, TMPDIR: temporary };
  const child = spawn(process.execPath, [COMMAND, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env,
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
  const ended = once(child, 'close').then(([code]: unknown[]) => code);
  const running = { process: child, output: () => text, ended };
  started.push(running);
  return running;
}

afterEach(async () => {
  for (const { process, ended } of started.splice(0)) {
    process.kill('SIGTERM');
    await ended;
  }
  rmSync(temporary, { recursive: true });
});

test('up gives a kubeconfig that works, with CRDs, roles and simulated nodes, and Ctrl-C removes everything', async () => {
  const up = start('up', '--nodes', '2');
  const kubeconfig = await vi.waitFor(
    () => /^export KUBECONFIG=(.+)$/m.exec(up.output())?.[1] ?? waiting(up),
    {
      timeout: 150_000,
    },
  );
  const kubectl = /^kubectl: +(.+)$/m.exec(up.output())?.[1] ?? '';
  const get = async (...args: string[]): Promise<string> =>
    (
      await run(kubectl, ['get', '-o', 'name', ...args], {
        environment: { KUBECONFIG: kubeconfig },
      })
    ).stdout;
  expect(await get('nodes', '-l', 'kubernetes.io/os=linux,kubernetes.io/arch=amd64')).toBe(
    'node/w1\nnode/w2\n',
  );
  expect(await get('crd', 'plans.autopilot.k0sproject.io')).toContain(
    'plans.autopilot.k0sproject.io',
  );
  expect(await get('clusterrole', 'refit-controller')).toContain('refit-controller');

  expect(processesNaming(temporary).length).toBeGreaterThan(4);
  up.process.kill('SIGINT');
  expect(await up.ended).toBe(0);
  expectNothingLeft();
});

test('Ctrl-C while it starts removes everything, too', async () => {
  const up = start('up');
  await vi.waitFor(
    () => expect(processesNaming(temporary).join('\n')).toContain('kube-apiserver'),
    {
      timeout: 150_000,
    },
  );
  up.process.kill('SIGINT');
  expect(await up.ended).toBe(130);
  expectNothingLeft();
});

function expectNothingLeft(): void {
  expect(processesNaming(temporary)).toEqual([]);
  expect(readdirSync(temporary)).toEqual([]);
}

function waiting({ output }: Running): never {
  throw new Error(`no kubeconfig yet: ${output()}`);
}

test.each([
  [['up', '--nodes', 'many'], '--nodes wants a whole number from 0 to 1000, found "many"'],
  [['up', '--nodes', '-1'], '--nodes'],
  [['up', '--nodes', '1001'], 'found "1001"'],
  [['up', '--node', '3'], "Unknown option '--node'"],
  [['down'], 'the only command is "up", found "down"'],
  [[], 'the only command is "up", none was given'],
])('%j ends with one line and exit code 2', async (args, line) => {
  const command = start(...args);
  expect(await command.ended).toBe(2);
  expect(command.output()).toContain(line);
  expect(command.output().trimEnd().split('\n')).toHaveLength(1);
});

test('--help ends with exit code 0', async () => {
  const command = start('--help');
  expect(await command.ended).toBe(0);
  expect(command.output()).toContain('npm run testenv -- up [--nodes N]');
});
