/** Tests that signals are decoded as k0s decodes them, and encoded byte for byte as k0s encodes them. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { decodeSignal, encodeSignal, type SignalData } from './annotations.ts';
import { SIGNAL_DATA_ANNOTATION, SIGNAL_VERSION_ANNOTATION } from './names.ts';

/** Every kind of signal in every status, as real k0s nodes and leaders wrote them. */
const recorded = JSON.parse(
  readFileSync(new URL('../../test/fixtures/autopilot/signals.json', import.meta.url), 'utf8'),
) as string[];

const annotations = (data: string): Record<string, string> => ({
  [SIGNAL_VERSION_ANNOTATION]: 'v2',
  [SIGNAL_DATA_ANNOTATION]: data,
});

const valid = {
  planId: 'p2',
  created: '2026-08-21T08:00:00Z',
  command: { id: 0, k0supdate: { url: 'https://example.com/k0s', version: 'v1.36.3+k0s.2' } },
};
const decode = (value: unknown): SignalData | undefined =>
  decodeSignal(annotations(JSON.stringify(value)));

test('the recordings hold commands of both kinds, forced ones, and every status', () => {
  const all = recorded.join('\n');
  for (const part of [
    '"k0supdate"',
    '"airgapupdate"',
    '"forceupdate":true',
    'FailedDownload',
    'UnCordoning',
  ]) {
    expect(all).toContain(part);
  }
});

test.each(recorded)('%s comes back byte for byte', (data) => {
  const signal = decodeSignal(annotations(data));
  if (signal === undefined) throw new Error('not decoded');
  expect(encodeSignal(signal)).toEqual(annotations(data));
});

test('characters that Go escapes are escaped, and read back', () => {
  const url = 'https://example.com/k0s?a=1&b=<2>\u2028';
  const signal = decode({
    ...valid,
    command: { id: 0, k0supdate: { ...valid.command.k0supdate, url } },
  });
  expect(signal?.command.url).toBe(url);
  const data = signal && encodeSignal(signal)[SIGNAL_DATA_ANNOTATION];
  expect(data).toContain(String.raw`?a=1\u0026b=\u003c2\u003e\u2028"`);
  expect(decodeSignal(annotations(data ?? ''))).toEqual(signal);
});

test('what is empty or false is left out, and what nobody knows is dropped', () => {
  const odd = { sha256: '', forceupdate: false, mirror: 'x' };
  const command = { id: 0, k0supdate: { ...valid.command.k0supdate, ...odd } };
  const signal = decode({ ...valid, command, status: null, extra: [1] });
  expect(signal && encodeSignal(signal)).toEqual(annotations(JSON.stringify(valid)));
});

const { url, version } = valid.command.k0supdate;
const status = { status: 'Downloading', timestamp: '2026-08-21T08:00:01Z' };

test.each<[string, unknown]>([
  ['nothing', null],
  ['a list', []],
  ['no planId', { ...valid, planId: undefined }],
  ['an empty planId', { ...valid, planId: '' }],
  ['no created', { ...valid, created: undefined }],
  ['a number for created', { ...valid, created: 1 }],
  ['no command', { ...valid, command: undefined }],
  ['no id', { ...valid, command: { k0supdate: { url, version } } }],
  ['id null', { ...valid, command: { id: null, k0supdate: { url, version } } }],
  ['half an id', { ...valid, command: { id: 0.5, k0supdate: { url, version } } }],
  ['no kind of command', { ...valid, command: { id: 0 } }],
  ['an unknown kind of command', { ...valid, command: { id: 0, reboot: { url, version } } }],
  [
    'two kinds at once',
    { ...valid, command: { id: 0, k0supdate: { url, version }, airgapupdate: { url, version } } },
  ],
  ['no url', { ...valid, command: { id: 0, k0supdate: { version } } }],
  [
    'an url without scheme',
    { ...valid, command: { id: 0, k0supdate: { url: 'example.com/k0s', version } } },
  ],
  ['no version', { ...valid, command: { id: 0, k0supdate: { url } } }],
  ['an empty version', { ...valid, command: { id: 0, k0supdate: { url, version: '' } } }],
  ['a number for sha256', { ...valid, command: { id: 0, k0supdate: { url, version, sha256: 1 } } }],
  [
    'a text for forceupdate',
    { ...valid, command: { id: 0, k0supdate: { url, version, forceupdate: 'true' } } },
  ],
  ['a status without a name', { ...valid, status: { ...status, status: '' } }],
  ['a status without a time', { ...valid, status: { status: 'Downloading' } }],
  ['a status that is no object', { ...valid, status: 'Downloading' }],
])('Refit finds no signal in %s', (_name, value) => {
  expect(decode({ ...valid, status })).toBeDefined();
  expect(decode(value)).toBeUndefined();
});

test.each<[string, Record<string, string> | undefined]>([
  ['no annotations', undefined],
  ['no version', { [SIGNAL_DATA_ANNOTATION]: JSON.stringify(valid) }],
  ['another version', { ...annotations(JSON.stringify(valid)), [SIGNAL_VERSION_ANNOTATION]: 'v1' }],
  ['no data', { [SIGNAL_VERSION_ANNOTATION]: 'v2' }],
  ['empty data', annotations('')],
  ['signal data that lacks its last character', annotations(JSON.stringify(valid).slice(0, -1))],
])('Refit finds no signal in %s', (_name, given) => {
  expect(decodeSignal(given)).toBeUndefined();
});

test('Refit decodes the same annotations only once', () => {
  const given = annotations(JSON.stringify(valid));
  expect(decodeSignal(given)).toBe(decodeSignal(given));
  expect(decodeSignal({ ...given })).not.toBe(decodeSignal(given));
});
