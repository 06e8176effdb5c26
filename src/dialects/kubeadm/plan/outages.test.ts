/** Proves what is logged while kubeadm replaces an API server. */
import { expect, test } from 'vitest';
import { jsonLogger } from '../../../util/log.ts';
import { expectedOutages } from './outages.ts';

const REPLACED = 'kubeadm replaces the API server: until it is back, requests fail';

test('requests that fail while kubeadm works are one line; before and after each is told', () => {
  const lines: string[] = [];
  const outages = expectedOutages({ monotonic: () => 0 });
  const write = (line: string): void => void lines.push((JSON.parse(line) as { msg: string }).msg);
  const log = outages.logger(jsonLogger(write, () => 0, 'warn'));
  const fails = (message: string): void =>
    log.child({ kind: 'Node' }).warn(message, { problem: 'connect ECONNREFUSED' });
  fails('before');
  outages.begin('cp1');
  for (const message of ['watch failed', 'cannot reach the lease', 'watch failed']) fails(message);
  log.warn('event dropped', { reason: 'Started' });
  outages.end('cp1');
  fails('after');
  outages.begin('cp2');
  fails('watch failed');
  expect(lines).toEqual(['before', REPLACED, 'event dropped', 'after', REPLACED]);
});

test('a refusal that lasts after the API server is back is told, each time anew', () => {
  const lines: string[] = [];
  let now = 0;
  const outages = expectedOutages({ monotonic: () => now });
  const write = (line: string): void => void lines.push((JSON.parse(line) as { msg: string }).msg);
  const log = outages.logger(jsonLogger(write, () => 0, 'warn'));
  const isRefused = (): void =>
    log.warn('cannot list', { problem: 'nodes is forbidden: User "x" cannot list' });
  outages.begin('cp1');
  isRefused();
  now = 59_000;
  isRefused();
  expect(lines).toEqual([REPLACED]);
  now = 60_000;
  isRefused();
  log.warn('cannot watch', { problem: 'connect ECONNREFUSED' });
  expect(lines).toEqual([REPLACED, 'cannot list']);
  outages.end('cp1');
  outages.begin('cp2');
  isRefused();
  expect(lines).toEqual([REPLACED, 'cannot list', REPLACED]);
});
