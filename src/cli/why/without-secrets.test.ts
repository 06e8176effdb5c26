/** Proves that a dump hides URLs and annotations of other software, and keeps what decisions read. */
import { expect, test } from 'vitest';
import { buildSignal } from '../../../test/support/builders/signals.ts';
import { installedVersion } from '../../signal/annotations.ts';
import { keptFileUrl } from '../../signal/kept-file.ts';
import { withoutSecrets } from './without-secrets.ts';

test.each([
  ['https://ada:hunter2@mirror.example:8443/k0s?X-Amz-Signature=1', 'https://mirror.example:8443'],
  ['ftp://me:hunter2@mirror.example/k0s', 'ftp://mirror.example'],
  [
    'two of them: http://a.example/1, https://b.example/2',
    'two of them: http://a.example https://b.example',
  ],
  [
    '{"url":"https://a.example/k0s?a=1\\u0026sig=hunter2","sha256":"ab"}',
    '{"url":"https://a.example","sha256":"ab"}',
  ],
  [
    '{"json":"{\\"url\\":\\"https://a.example/k0s\\"}"}',
    '{"json":"{\\"url\\":\\"https://a.example\\"}"}',
  ],
  ['https://[a:hunter2', '***'],
  ['w1: the download failed: 404', 'w1: the download failed: 404'],
])('of the URLs in the text %s the dump has %s', (text, shown) => {
  expect(withoutSecrets({ text })).toEqual({ text: shown });
});

test('the address that stands for a kept file still does so in a dump', () => {
  const { host } = new URL(withoutSecrets({ url: keptFileUrl('v1.36.3+k0s.2') }).url);
  expect(host).toBe('kept-by-each-host.refit.invalid');
});

test('of an annotation of other software only the key is in a dump, and signals can still be read', () => {
  const annotations = {
    ...buildSignal({ status: 'Completed' }),
    'upgrade.refit.dev/hold': '{"by":"ann"}',
    'k3s.io/node-args': '["agent","-t","hunter2"]',
  };
  const shown = withoutSecrets({ annotations }).annotations;
  expect(shown['k3s.io/node-args']).toBe('***');
  expect(shown['upgrade.refit.dev/hold']).toBe('{"by":"ann"}');
  expect(installedVersion(shown)).toBe('v1.36.3+k0s.2');
});

test('sets, maps and numbers without end are in a dump as they were', () => {
  const value = { allow: new Set(['Downgrade']), facts: new Map([['w1', 1]]), deadline: Infinity };
  expect(withoutSecrets(value)).toEqual(value);
});
