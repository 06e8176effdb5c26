/** Tests which proxy a download uses, in the cases for which Go's client has special rules. */
import { expect, test } from 'vitest';
import { type Environment, proxyFor } from './proxy-choice.ts';

const chosen = (url: string, environment: Environment): string | undefined =>
  proxyFor(new URL(url), environment)?.href;

test.each<[string, string, Environment, string | undefined]>([
  ['nothing is set', 'https://a.example/k0s', {}, undefined],
  ['https', 'https://a.example/k0s', { HTTPS_PROXY: 'http://p:3128' }, 'http://p:3128/'],
  ['http', 'http://a.example/k0s', { HTTP_PROXY: 'http://p:3128' }, 'http://p:3128/'],
  ['each has its own', 'http://a.example/k0s', { HTTPS_PROXY: 'http://p:3128' }, undefined],
  ['small letters', 'https://a.example/k0s', { https_proxy: 'https://me:x@p' }, 'https://me:x@p/'],
  [
    'capitals win',
    'https://a.example/k0s',
    { https_proxy: 'http://q', HTTPS_PROXY: 'http://p' },
    'http://p/',
  ],
  [
    'set, and empty',
    'https://a.example/k0s',
    { https_proxy: 'http://q', HTTPS_PROXY: '' },
    'http://q/',
  ],
  [
    'without a scheme',
    'https://a.example/k0s',
    { HTTPS_PROXY: 'p.example:3128' },
    'http://p.example:3128/',
  ],
  ['the host itself', 'http://127.3.2.1:8080/k0s', { HTTP_PROXY: 'http://p' }, undefined],
  ['the host itself, by name', 'http://localhost/k0s', { HTTP_PROXY: 'http://p' }, undefined],
  ['the host itself, by IPv6', 'http://[::1]/k0s', { HTTP_PROXY: 'http://p' }, undefined],
])('%s', (_name, url, environment, expected) => {
  expect(chosen(url, environment)).toBe(expected);
});

test.each<[noProxy: string, url: string, isExempt: boolean]>([
  ['*', 'http://a.example', true],
  ['a.example', 'http://a.example', true],
  ['a.example', 'http://b.a.example', true],
  ['a.example', 'http://ba.example', false],
  ['.a.example', 'http://b.a.example', true],
  ['.a.example', 'http://a.example', false],
  ['*.a.example', 'http://b.a.example', true],
  ['*.a.example', 'http://a.example', false],
  [' b , A.Example ', 'http://a.example', true],
  ['a.example:80', 'http://a.example', true],
  ['a.example:443', 'http://a.example', false],
  ['a.example:8080', 'http://a.example:8080', true],
  ['10.1.2.3', 'http://10.1.2.3', true],
  ['10.1.2.3:8080', 'http://10.1.2.3', false],
  ['10.0.0.0/8', 'http://10.1.2.3', true],
  ['10.0.0.0/8', 'http://11.1.2.3', false],
  ['10.0.0.0/8', 'http://a.example', false],
  ['10.0.0.0/99,10.0.0.0/x', 'http://10.0.0.0', false],
  ['fd00::/8', 'http://[fd00::1]', true],
  ['fd00::1', 'http://[fd00::1]', true],
  ['[fd00::1]:80', 'http://[fd00::1]', true],
  ['[fd00::1]:81', 'http://[fd00::1]', false],
  [',,.,', 'http://a.example', false],
  ['.', 'http://a.example.', false],
  ['', 'http://a.example.', false],
  ['a.example', 'http://b.a.example.', false],
  ['x:a.example:80', 'http://a.example', false],
  ['a.example:80x', 'http://a.example', false],
  ['10.1.2.3', 'http://10.1.2.33', false],
  ['0.0.0.0/0', 'http://10.1.2.3', true],
  ['10.1.2.3/32', 'http://10.1.2.3', true],
  ['10.1.2.3/33', 'http://10.1.2.3', false],
  ['10.1.2.3/-1', 'http://10.1.2.3', false],
  ['fd00::1/128', 'http://[fd00::1]', true],
  ['fd00::1/129', 'http://[fd00::1]', false],
  ['a.example/8', 'http://a.example', false],
  ['fd00::/8', 'http://a.example', false],
  ['fd00::1', 'http://[fd00::11]', false],
])('NO_PROXY=%s and %s: %s', (noProxy, url, isExempt) => {
  const environment = { HTTP_PROXY: 'http://p', NO_PROXY: noProxy };
  expect(chosen(url, environment)).toBe(isExempt ? undefined : 'http://p/');
});

test.each(['socks5://me:secret@p', 'SOCKS5h://p:1080', 'socks4://p'])(
  '%s is refused as what it is',
  (HTTPS_PROXY) => {
    const words =
      /^HTTPS_PROXY names a SOCKS proxy, which is not supported: use an http or https proxy$/;
    expect(() => chosen('https://a.example', { HTTPS_PROXY })).toThrow(words);
  },
);

test.each(['http://', 'me:secret@p:x', 'http://me:se%cret@p', 'http://m%e@p'])(
  '%s cannot be used, and is not told',
  (HTTPS_PROXY) => {
    expect(() => chosen('https://a.example', { HTTPS_PROXY })).toThrow(
      /^HTTPS_PROXY is not a proxy URL; use for example http:\/\/192\.0\.2\.1:3128$/,
    );
  },
);
