/** Tests that a printed URL has no secrets, and that a password becomes a header. */
import { expect, test } from 'vitest';
import { basicAuthorization, printableUrl } from './printable-url.ts';

test.each([
  ['nothing to hide', 'https://example.com/k0s/v1', 'https://example.com/k0s/v1'],
  ['user and password', 'https://user:pass@example.com/k0s', 'https://***@example.com/k0s'],
  ['a user alone', 'https://token@example.com/k0s', 'https://***@example.com/k0s'],
  ['an @ in the password', 'https://user:p@ss@example.com/k0s', 'https://***@example.com/k0s'],
  ['a path with an @', 'https://example.com/@scope/k0s', 'https://example.com/@scope/k0s'],
  [
    'backslashes, which the URL class repairs',
    'https:\\\\user:pass@example.com/k0s',
    'https:\\\\***@example.com/k0s',
  ],
  [
    'no slashes, which the URL class repairs',
    'https:user:pass@example.com/k0s',
    'https:***@example.com/k0s',
  ],
  ['a query', 'https://example.com/k0s?token=abc&x=1', 'https://example.com/k0s?***'],
  ['a fragment', 'https://example.com/k0s#token', 'https://example.com/k0s#***'],
  ['both', 'https://u:p@example.com:8443/k0s?sig=1#x', 'https://***@example.com:8443/k0s?***'],
  ['an empty query', 'https://example.com/k0s?', 'https://example.com/k0s?'],
  ['a line break in the query', 'https://example.com/k0s?a\ntoken', 'https://example.com/k0s?***'],
  ['a malformed URL', 'https://user:pa ss/word@exam ple/k0s', 'https://***@exam ple/k0s'],
  [
    'a malformed port',
    'https://user:pass@example.com:port/k0s',
    'https://***@example.com:port/k0s',
  ],
  ['no scheme', 'user:pass@example.com/k0s', '***@example.com/k0s'],
  ['no URL', 'k0s', 'k0s'],
])('%s', (_name, url, printed) => expect(printableUrl(url)).toBe(printed));

test('user and password become a header', () => {
  const authorization = basicAuthorization(new URL('https://me:p%40ss@example.com/k0s?a=1'));
  expect(authorization).toBe(`Basic ${Buffer.from('me:p@ss').toString('base64')}`);
});
