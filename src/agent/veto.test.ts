/** Tests which downloads and versions the agent's own rules allow. */
import { expect, test } from 'vitest';
import { keptFileUrl } from '../signal/kept-file.ts';
import { hostVeto, type Veto, vetoOf } from './veto.ts';

test.each([
  ['https://mirror.example/k0s', 'mirror.example:443', true],
  ['https://mirror.example:443/k0s', 'mirror.example', true],
  ['http://mirror.example/k0s', 'mirror.example:80', true],
  ['http://mirror.example/k0s', 'mirror.example:443', false],
  ['https://mirror.example:8443/k0s', 'mirror.example:8443', true],
  ['https://mirror.example:8443/k0s', 'mirror.example:443', false],
  ['https://[::1]/k0s', '[::1]:443', true],
])('whether %s may be asked with --allowed-hosts %s: %s', (url, entry, isAllowed) => {
  expect(hostVeto(new URL(url), [entry]) === undefined).toBe(isAllowed);
});

const RULES: Veto = {
  requireSha256: true,
  requireHttps: true,
  allowUnverified: false,
  allowedHosts: ['mirror.example'],
  lowestVersion: undefined,
  refuseDowngrade: true,
  maxSignalAgeMs: 0,
};

test('a kept file of the host needs no allowed host, but every other rule of the agent applies to it', () => {
  const command = {
    id: 0,
    kind: 'k0supdate',
    url: keptFileUrl('v1.36.2+k0s.0'),
    version: 'v1.36.2+k0s.0',
    sha256: 'ab'.repeat(32),
  } as const;
  const { sha256: _, ...unverified } = command;
  expect(vetoOf(command, 'v1.36.2+k0s.0', RULES)).toBeUndefined();
  expect(vetoOf(command, 'v1.36.3+k0s.0', RULES)).toContain('is below v1.36.3+k0s.0');
  expect(vetoOf(unverified, undefined, RULES)).toContain('requires a sha256');
  expect(vetoOf({ ...command, kind: 'airgapupdate' }, undefined, RULES)).toContain(
    'downloads nothing from',
  );
});
