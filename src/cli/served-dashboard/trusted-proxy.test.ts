/**
 * Shows from which senders the dashboard of a controller accepts the token of a viewer in a header, and what it
 * refuses.
 */
import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { arrivals, type TrustedProxyOptions } from './trusted-proxy.ts';

const HEADER = 'X-Forwarded-Access-Token';
const PROXY = '10.1.2.3';

function arrive(
  { tokenHeader = HEADER, trustedProxies = ['10.1.0.0/16'] }: TrustedProxyOptions,
  from: string,
  values: readonly string[],
) {
  const headersDistinct = values.length === 0 ? {} : { [tokenHeader.toLowerCase()]: values };
  const request = { headersDistinct, socket: { remoteAddress: from } };
  return arrivals({ tokenHeader, trustedProxies })(request as unknown as IncomingMessage);
}

test('without the option, no header counts', () => {
  const headersDistinct = { 'x-forwarded-access-token': ['a'] };
  const request = { headersDistinct, socket: { remoteAddress: '127.0.0.1' } };
  expect(arrivals({})(request as unknown as IncomingMessage)).toEqual({ kind: 'direct' });
});

test.each([
  ['10.1.0.0/16', '10.1.2.3'],
  ['10.1.0.0/16', '::ffff:10.1.2.3'],
  ['10.1.2.3', '10.1.2.3'],
  ['fd00::/8', 'fd12::1'],
  ['fe80::/10', 'fe80::1%eth0'],
])('the range %s has the address %s', (range, from) => {
  const proxied = { kind: 'proxied', token: 'a.b' };
  expect(arrive({ trustedProxies: ['192.0.2.1', range] }, from, ['a.b'])).toEqual(proxied);
});

test.each([
  ['10.1.0.0/16', '10.2.2.3'],
  ['10.1.2.3', '10.1.2.4'],
  ['fd00::/8', '10.1.2.3'],
  ['10.1.0.0/16', ''],
])(
  'with the range %s, the header from %s is refused, and other requests are direct',
  (range, from) => {
    const options = { trustedProxies: [range] };
    expect(arrive(options, from, ['a.b'])).toMatchObject({
      kind: 'refused',
      code: 403,
      why: expect.stringMatching(
        /^The header X-Forwarded-Access-Token is accepted only from the addresses of --ui-trusted-proxy/,
      ) as string,
    });
    expect(arrive(options, from, [])).toEqual({ kind: 'direct' });
  },
);

test.each([
  [[], 'sent no token in the header'],
  [[''], 'sent no token in the header'],
  [['a', 'a'], '2 times: it must replace the header, not add another'],
  [['a, b'], 'does not hold one bearer token'],
  [['Bearer '], 'does not hold one bearer token'],
  [['Basic YTpi'], 'does not hold one bearer token'],
  [['a;b'], 'does not hold one bearer token'],
  [['a'.repeat(12 * 1024 + 1)], 'is longer than 12288 characters'],
])('from the proxy, the values %j are refused with the reason', (values, why) => {
  const refused = { kind: 'refused', code: 401, why: expect.stringContaining(why) as string };
  expect(arrive({}, PROXY, values)).toMatchObject(refused);
});

test('a scheme is allowed, and Authorization needs it', () => {
  const proxied = { kind: 'proxied', token: 'a' };
  const authorization = { tokenHeader: 'Authorization' };
  expect(arrive({}, PROXY, ['Bearer a'])).toEqual(proxied);
  expect(arrive(authorization, PROXY, ['bearer a'])).toEqual(proxied);
  expect(arrive(authorization, PROXY, ['a'])).toMatchObject({ kind: 'refused', code: 401 });
  expect(arrive({}, PROXY, ['a'.repeat(12 * 1024)])).toMatchObject({ kind: 'proxied' });
});

const wrongHeaders = [
  '',
  'a b',
  'Content-Length',
  'X-Forwarded-User',
  'Cookie',
  'host',
  'Origin',
  'Sec-Fetch-Site',
  'X-Refit-Action',
];
const wrongRanges = [
  '',
  'proxy',
  '10.1.2.3/33',
  '10.1.2.3/x8',
  '10.1.2.3/ 8',
  '10.1.2.3/8.0',
  '10.1.2.3/1e1',
  '10.1.2.3/0x10',
  '10.1.2.3/',
  '10.1.2.3/8/8',
  '0.0.0.0/0',
  '::/0',
  '0.0.0.0/1',
  '::ffff:0:0/96',
  'fe80::1%eth0',
  'fd00::/129',
];
test('options that are refused have a hint that names a value to write', () => {
  const refused = (options: TrustedProxyOptions, hint: string): void =>
    expect(() => arrivals(options)).toThrow(
      expect.objectContaining({ line: expect.stringContaining(`(${hint})`) as string }) as Error,
    );
  refused(
    { tokenHeader: 'Cookie', trustedProxies: [PROXY] },
    'write the header that the proxy sets, such as X-Forwarded-Access-Token',
  );
  refused(
    { tokenHeader: HEADER },
    'add the address of the proxy, such as --ui-trusted-proxy 10.244.1.7',
  );
  refused(
    { tokenHeader: HEADER, trustedProxies: ['proxy'] },
    'write an address such as 10.244.1.7, or a small range such as 10.244.1.0/28',
  );
});

test('the shortest prefix is 8 bits, and the sentence about a shorter one says so', () => {
  expect(arrive({ trustedProxies: ['10.0.0.0/8'] }, PROXY, ['a'])).toMatchObject({ token: 'a' });
  for (const range of ['10.0.0.0/7', 'fd00::/7', 'proxy'])
    expect(() => arrivals({ tokenHeader: HEADER, trustedProxies: [range] })).toThrow(
      `--ui-trusted-proxy "${range}" is not an IP address, or a range with a prefix of at least 8 bits`,
    );
});

test('an address that is unknown, or no IP address, is no trusted proxy', () => {
  const header = { [HEADER.toLowerCase()]: ['a'] };
  const arrivalOf = arrivals({ tokenHeader: HEADER, trustedProxies: ['10.0.0.0/8', 'fd00::/8'] });
  const from = (remoteAddress: string | undefined, headersDistinct: object = header) =>
    arrivalOf({ headersDistinct, socket: { remoteAddress } } as unknown as IncomingMessage);
  expect(from(undefined)).toEqual({
    kind: 'refused',
    code: 403,
    why: 'The header X-Forwarded-Access-Token is accepted only from the addresses of --ui-trusted-proxy, and this address is not one of them.',
  });
  for (const address of ['proxy', '10.1.2', '%eth0', ''])
    expect(from(address), address).toMatchObject({ kind: 'refused', code: 403 });
  expect(from(undefined, {})).toEqual({ kind: 'direct' });
});

test('spaces around a bearer token do not count', () => {
  expect(arrive({}, PROXY, ['Bearer   a.b '])).toEqual({ kind: 'proxied', token: 'a.b' });
  expect(arrive({}, PROXY, ['x Bearer a.b'])).toMatchObject({ kind: 'refused' });
});

const wrong: [TrustedProxyOptions, string][] = [
  [{ trustedProxies: [PROXY] }, '--ui-trusted-proxy needs --ui-token-header'],
  [{ tokenHeader: HEADER }, '--ui-token-header needs --ui-trusted-proxy'],
];
for (const tokenHeader of wrongHeaders)
  wrong.push([{ tokenHeader, trustedProxies: [PROXY] }, 'cannot be the header with the token']);
for (const range of wrongRanges)
  wrong.push([
    { tokenHeader: HEADER, trustedProxies: [range] },
    'is not an IP address, or a range',
  ]);

test.each(wrong)('the options %j are refused', (options, problem) => {
  expect(() => arrivals(options)).toThrow(
    expect.objectContaining({
      code: 'REFIT_USAGE',
      message: expect.stringContaining(problem) as string,
    }) as Error,
  );
});
