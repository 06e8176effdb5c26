/** Tests how a failed start is reported, and that no process of a component survives its stop or its parent's death. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/util/clock.ts';
import { SkewedClock } from '../../test/support/clock/skewed-clock.ts';
import { type Process, startProcess } from './process.ts';

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'refit-process-'));
  for (const folder of ['logs', 'pids']) mkdirSync(join(directory, folder));
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** /bin/sh runs `script`. It is ready once its log contains `ready`. */
async function start(script: string, abort?: AbortSignal, clock = systemClock): Promise<Process> {
  const ready = async (): Promise<boolean> =>
    await Promise.resolve(
      readFileSync(join(directory, 'logs', 'part.log'), 'utf8').includes('ready'),
    );
  const args = ['-c', script];
  return await startProcess({
    name: 'part',
    command: '/bin/sh',
    args,
    directory,
    ready,
    clock,
    abort,
  });
}

/**
 * Reports whether the process is alive. A process without its parent remains a zombie until the init process of the
 * machine reaps it, and a zombie is not alive.
 */
function isAlive(pid: number): boolean {
  const stat = `/proc/${pid}/stat`;
  return existsSync(stat) && !readFileSync(stat, 'utf8').includes(') Z ');
}

test('stop ends the process and its pid file', async () => {
  const part = await start('echo ready; exec sleep 600');
  expect(readFileSync(join(directory, 'pids', 'part'), 'utf8')).toBe(String(part.pid));
  await part.stop();
  expect(isAlive(part.pid)).toBe(false);
  expect(existsSync(join(directory, 'pids', 'part'))).toBe(false);
});

test('stop ends a process that does not heed SIGTERM', async () => {
  const part = await start(
    "trap '' TERM; echo ready; exec sleep 600",
    undefined,
    new SkewedClock(systemClock, { pauses: 1 / 20 }),
  );
  onTestFinished(() => void (isAlive(part.pid) && process.kill(part.pid, 'SIGKILL')));
  await part.stop();
  expect(isAlive(part.pid)).toBe(false);
});

test('a process that ends before it is ready is reported with the end of its log', async () => {
  await expect(start('echo unknown flag --foo; exit 3')).rejects.toThrow(
    'part ended with exit code 3: unknown flag --foo',
  );
});

test('a command that does not exist is reported', async () => {
  const options = {
    directory,
    ready: async () => await Promise.resolve(false),
    clock: systemClock,
  };
  const missing = startProcess({ name: 'part', command: '/nonexistent', args: [], ...options });
  await expect(missing).rejects.toThrow('part could not be started: spawn /nonexistent ENOENT');
});

test('an abort before it is ready ends the process', async () => {
  const abort = new AbortController();
  const starting = start('exec sleep 600', abort.signal);
  const pid = Number(
    await vi.waitFor(() => readFileSync(join(directory, 'pids', 'part'), 'utf8'), 60_000),
  );
  abort.abort();
  await expect(starting).rejects.toThrow('aborted');
  expect(isAlive(pid)).toBe(false);
});

test('the guard ends the processes and removes the directory of a parent that was killed', async () => {
  const script = `
    import { guardDirectory } from '${import.meta.dirname}/guard.ts';
    import { startProcess } from '${import.meta.dirname}/process.ts';
    import { systemClock } from '${import.meta.dirname}/../../src/util/clock.ts';
    const directory = '${directory}';
    guardDirectory(directory);
    const part = await startProcess({ name: 'part', command: '/bin/sleep', args: ['600'], directory, ready: async () => true, clock: systemClock });
    console.log(part.pid);
    process.stdin.resume();`;
  const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const pid = Number(String((await once(parent.stdout, 'data'))[0]));
  expect(isAlive(pid)).toBe(true);
  parent.kill('SIGKILL');
  await vi.waitFor(() => expect(existsSync(directory)).toBe(false), { timeout: 10_000 });
  await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 10_000 });
});
