/** Tests from which hosts the agent may download according to its own rules. */
import { expect, test } from 'vitest';
import { hostVeto } from './veto.ts';

test.each([
  ['https://mirror.example/k0s', 'mirror.example:443', true],
  ['https://mirror.example:443/k0s', 'mirror.example', true],
  ['http://mirror.example/k0s', 'mirror.example:80', true],
  ['http://mirror.example/k0s', 'mirror.example:443', false],
  ['https://mirror.example:8443/k0s', 'mirror.example:8443', true],
  ['https://mirror.example:8443/k0s', 'mirror.example:443', false],
  ['https://[::1]/k0s', '[::1]:443', true],
])('%s with --allowed-hosts %s: %s', (url, entry, isAllowed) => {
  expect(hostVeto(new URL(url), [entry]) === undefined).toBe(isAllowed);
});
