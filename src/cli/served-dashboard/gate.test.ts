/** Tests from which hosts and pages the served dashboard accepts a request, and where it looks for the token. */
import { expect, test } from 'vitest';
import { hostIn, isLoopback, isOfOwnPage, isOwnName, isToken, tokenIn } from './gate.ts';

test.each([
  ['Refit.Example.com:8443', 'refit.example.com'],
  ['refit.example.com', 'refit.example.com'],
  ['[::1]:8443', '::1'],
  ['[FD00::1]', 'fd00::1'],
  [':8443', ''],
  ['', ''],
  // A text that is no host and port has no host, even if a part of it looks like one.
  ['localhost:8443:evil.example', ''],
  ['evil.example:80:localhost', ''],
  ['localhost:port', ''],
  ['localhost:', ''],
  ['::1', ''],
])('the host of "%s" is "%s"', (text, host) => {
  expect(hostIn(text)).toBe(host);
});

test.each([
  ['127.0.0.1:0', true],
  ['localhost:8443', true],
  ['[::1]:8443', true],
  [':8443', false],
  ['0.0.0.0:8443', false],
  ['192.0.2.1:8443', false],
])('whether only this machine reaches the address %s: %s', (address, isPrivate) => {
  expect(isLoopback(address)).toBe(isPrivate);
});

test('a request without a host name, or with one that has no form, is for no name of this server', () => {
  const knowsAll = () => true;
  expect(isOwnName({}, knowsAll)).toBe(false);
  expect(isOwnName({ host: '' }, knowsAll)).toBe(false);
  expect(isOwnName({ host: 'localhost:1:2' }, knowsAll)).toBe(false);
  expect(isOwnName({ host: 'refit.example.com' }, knowsAll)).toBe(true);
});

test('a name is looked up in lower case and without its port, and the loopback names need no look-up', () => {
  const asked: string[] = [];
  const isKnown = (name: string) => asked.push(name) > 1;
  expect(isOwnName({ host: 'Refit.Example.com:8443' }, isKnown)).toBe(false);
  expect(isOwnName({ host: 'refit.example.com' }, isKnown)).toBe(true);
  for (const host of ['localhost:1', '127.0.0.1:1', '[::1]:1'])
    expect(isOwnName({ host }, isKnown), host).toBe(true);
  expect(asked).toEqual(['refit.example.com', 'refit.example.com']);
});

const OWN = 'refit.example.com:8443';

test.each([
  [{}, true],
  [{ 'sec-fetch-site': 'same-origin' }, true],
  [{ 'sec-fetch-site': 'same-site' }, false],
  [{ 'sec-fetch-site': 'none' }, false],
  [{ origin: `https://${OWN}` }, true],
  [{ origin: 'https://refit.example.com' }, false],
  [{ origin: 'null' }, false],
  [{ origin: '' }, false],
  [{ origin: `https://${OWN}`, 'sec-fetch-site': 'cross-site' }, false],
])('whether a page of this server sent a request with the headers %j: %s', (headers, isOwn) => {
  expect(isOfOwnPage({ host: 'Refit.example.com:8443', ...headers })).toBe(isOwn);
});

test('a request without a host name comes from no page', () => {
  expect(isOfOwnPage({ origin: 'https://refit.example.com' })).toBe(false);
});

test.each([
  ['a.b-c_d~e+f/g==', true],
  ['a', true],
  ['', false],
  ['=', false],
  ['a=b', false],
  ['a b', false],
  ['a;b', false],
  ['a\n', false],
  [' a', false],
])('whether %j may be a token: %s', (text, mayBe) => {
  expect(isToken(text)).toBe(mayBe);
});

test.each([
  ['Bearer a.b', 'a.b'],
  ['bearer   a.b', 'a.b'],
  ['Bearer a.b c', undefined],
  ['Bearer a;b', undefined],
  ['Bearer', undefined],
  ['Bearer ', undefined],
  ['Bearera', undefined],
  ['Basic a.b', undefined],
  ['Basic Bearer a.b', undefined],
  ['', undefined],
])(
  'the header Authorization: %s has the token %s, and the cookie does not count',
  (authorization, token) => {
    expect(tokenIn({ authorization, cookie: 'refit-token=other' }, 'refit-token')).toBe(token);
  },
);

test.each([
  ['refit-token=a.b', 'a.b'],
  ['theme=dark; refit-token=a.b; x=y', 'a.b'],
  ['refit-token=first; refit-token=second', 'first'],
  ['refit-token=a=', 'a='],
  ['refit-token=', undefined],
  ['refit-token=a,b', undefined],
  ['refit-token-old=a.b', undefined],
  ['__Host-refit-token=a.b', undefined],
  ['', undefined],
])('the cookie %j has the token %s', (cookie, token) => {
  expect(tokenIn({ cookie }, 'refit-token')).toBe(token);
});

test('a request without a header and a cookie has no token', () => {
  expect(tokenIn({}, 'refit-token')).toBeUndefined();
});
