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
  '10.1.2.3/',
  '10.1.2.3/8/8',
  '0.0.0.0/0',
  '::/0',
  '0.0.0.0/1',
  '::ffff:0:0/96',
  'fe80::1%eth0',
  'fd00::/129',
];
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
