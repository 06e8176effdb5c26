/**
 * Tests that only one process holds the build lock, that the next process gets it, and that the lock is released when
 * its holder dies.
 */
import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { withLock } from './lock.ts';

const ignore = (): void => undefined;

test('the second holder enters when the first has left', async () => {
  const name = randomUUID();
  const events: string[] = [];
  const waits = Promise.withResolvers<void>();
  const first = withLock(name, { onWait: ignore }, async () => {
    events.push('first in');
    await waits.promise;
    events.push('first out');
  });
  const second = withLock(name, { onWait: waits.resolve }, async () => {
    await Promise.resolve(events.push('second in'));
  });
  await Promise.all([first, second]);
  expect(events).toEqual(['first in', 'first out', 'second in']);
});

/**
 * Returns how often the socket of the lock is open: once for the holder of the lock, and once for each process that
 * waits.
 */
function openOf(name: string): number {
  const path = `@refit-${createHash('sha256').update(name).digest('hex')}`;
  return readFileSync('/proc/net/unix', 'utf8')
    .split('\n')
    .filter((line) => line.endsWith(path)).length;
}

test('who waits already enters when the holder has left and lives on', async () => {
  const name = randomUUID();
  const inside = Promise.withResolvers<void>();
  const first = withLock(name, { onWait: ignore }, async () => await inside.promise);
  const second = withLock(name, { onWait: ignore }, async () => await Promise.resolve('second in'));
  await vi.waitFor(() => expect(openOf(name)).toBe(2), 60_000);
  inside.resolve();
  await first;
  expect(await second).toBe('second in');
});

test('a failure frees the lock', async () => {
  const name = randomUUID();
  const failing = withLock(
    name,
    { onWait: ignore },
    async () => await Promise.reject(new Error('no')),
  );
  await expect(failing).rejects.toThrow('no');
  expect(await withLock(name, { onWait: ignore }, async () => await Promise.resolve('in'))).toBe(
    'in',
  );
});

test('the death of the holder frees the lock', async () => {
  const name = randomUUID();
  const script = `import { withLock } from '${import.meta.dirname}/lock.ts';
    await withLock('${name}', { onWait() {} }, async () => { console.log('in'); await new Promise(() => process.stdin.resume()); });`;
  const holder = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  const entered = await withLock(
    name,
    { onWait: () => holder.kill('SIGKILL') },
    async () => await Promise.resolve('in'),
  );
  expect(entered).toBe('in');
  expect(holder.signalCode ?? (await once(holder, 'exit'))[1]).toBe('SIGKILL');
});

test('an abort ends the wait', async () => {
  const name = randomUUID();
  const abort = new AbortController();
  const inside = Promise.withResolvers<void>();
  const first = withLock(name, { onWait: ignore }, async () => await inside.promise);
  const second = withLock(
    name,
    { onWait: () => abort.abort(), abort: abort.signal },
    async () => await inside.promise,
  );
  await expect(second).rejects.toThrow('aborted');
  inside.resolve();
  await first;
});
