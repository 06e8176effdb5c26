/** Proves what is logged while kubeadm replaces an API server. */
import { expect, test } from 'vitest';
import { jsonLogger } from '../../util/log.ts';
import { ExpectedOutages } from './outages.ts';

const REPLACED = 'kubeadm replaces the API server: until it is back, requests fail';

test('requests that fail while kubeadm works are one line; before and after each is told', () => {
  const lines: string[] = [];
  const outages = new ExpectedOutages();
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
