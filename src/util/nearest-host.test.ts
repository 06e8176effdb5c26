/** Proves which node a wrong name of a host means. */
import { expect, test } from 'vitest';
import { nearestHost } from './nearest-host.ts';

const KNOWN = ['nuc-1', 'nuc-2', 'db.example.com'];

test.each([
  ['NUC-1', 'nuc-1'],
  ['nuc-2.lab.example.com', 'nuc-2'],
  ['DB', 'db.example.com'],
  ['nvc-1', 'nuc-1'],
  ['nuc-3', undefined],
  ['other', undefined],
])('the host %s is %s', (name, meant) => {
  expect(nearestHost(name, KNOWN)).toBe(meant);
});
