/** Tests by which host names clients may ask an update server. */
import { hostname } from 'node:os';
import { expect, test } from 'vitest';
import { isKnownHost } from './known-hosts.ts';

const GIVEN = ['updates.example.com', '2001:db8::7'];

test.each([
  ['localhost:8443', true],
  ['127.0.0.2', true],
  ['[::1]:8080', true],
  [hostname(), true],
  ['10.0.0.5:8443', true],
  ['Updates.Example.com:8443', true],
  ['updates.example.com.', true],
  ['[2001:db8:0::7]', true],
  ['10.0.0.6', false],
  ['evil.example.com', false],
  ['127.0.0.1.evil.example.com', false],
  ['updates.example.com.evil.example.com', false],
  ['evil.example.com@localhost:x', false],
  ['', false],
])('whether the Host %s is a name of the update server: %s', (asked, isKnown) => {
  expect(isKnownHost(asked, '::ffff:10.0.0.5', GIVEN)).toBe(isKnown);
});
