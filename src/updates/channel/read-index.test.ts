/** Proves which answers of update servers are accepted as a release: both formats of k0s, and nothing misleading. */

import { expect, test } from 'vitest';
import { costFactor } from '../../../test/support/growth.ts';
import { readIndex } from './read-index.ts';

const SHA = 'ab'.repeat(32);
const LISTED = `
channel: stable
eolDate: 2027-06-28
version: v1.36.4+k0s.0
downloadURLs:
- {os: linux, arch: amd64, k0s: "https://example.com/k0s", k0sSha256: ${SHA.toUpperCase()}, airgapBundle: "https://example.com/b"}
- {arch: arm64, os: linux, url: "https://example.com/older"}
- {arch: arm, os: linux}
`;
/** The maximum number of bytes that are read from an index. */
const LARGEST = 64 * 1024;
const ENTRY = '- {os: linux, arch: amd64, k0s: "https://example.com/k0s"}\n';
/** An index of about the largest size that is valid. */
const LARGE = `version: v1.2.3\ndownloadURLs:\n${ENTRY.repeat(LARGEST / ENTRY.length - 1)}`;
const MAPPED = `
version: 1.36.4+k0s.0
downloadURLs:
  k0s: {linux-amd64: "https://example.com/k0s"}
  airgap: {linux-amd64: "https://example.com/b"}
`;

test('the list of downloads of the public index is read', () => {
  expect(readIndex(LISTED)).toEqual({
    version: 'v1.36.4+k0s.0',
    k0s: {
      'linux-amd64': { url: 'https://example.com/k0s', sha256: SHA },
      'linux-arm64': { url: 'https://example.com/older' },
    },
    airgap: { 'linux-amd64': { url: 'https://example.com/b' } },
    withdrawn: {},
  });
});

test('Refit reads a map of downloads, as for the cron strategy, and adds the missing v to the version', () => {
  expect(readIndex(MAPPED)).toEqual({
    version: 'v1.36.4+k0s.0',
    k0s: { 'linux-amd64': { url: 'https://example.com/k0s' } },
    airgap: { 'linux-amd64': { url: 'https://example.com/b' } },
    withdrawn: {},
  });
});

test('Refit turns the file names of the channel edge_release into platforms, and keeps other names', () => {
  const url = 'https://example.com/file';
  const names = [
    'linux-airgap-bundle-amd64',
    'k0s-airgap-bundle-arm64',
    'k0s-arm',
    'windows-amd64',
  ];
  const airgap = Object.fromEntries(names.map((name) => [name, url]));
  const read = readIndex(JSON.stringify({ version: 'v1.36.4+k0s.0', downloadURLs: { airgap } }));
  expect(Object.keys(read.airgap)).toEqual([
    'linux-amd64',
    'linux-arm64',
    'linux-arm',
    'windows-amd64',
  ]);
});

test('a field of an index without a value counts as absent, as for k0s', () => {
  const listed = readIndex(
    `${LISTED}- {arch: riscv64, os: linux, k0s: "https://example.com/k", k0sSha256:, airgapBundle:}`,
  );
  expect(listed.k0s['linux-riscv64']).toEqual({ url: 'https://example.com/k' });
  const mapped = readIndex(MAPPED.replace(/airgap:.*/, 'airgap:\nwithdrawn:'));
  expect([Object.keys(mapped.k0s), mapped.airgap, mapped.withdrawn]).toEqual([
    ['linux-amd64'],
    {},
    {},
  ]);
});

test('an index in JSON, with keys in any case, is read with the releases that were withdrawn', () => {
  const index = {
    VERSION: 'v1.2.3',
    DownloadURLs: [],
    Withdrawn: { '1.2.2': 'loses\u001b[2J data' },
  };
  expect(readIndex(JSON.stringify(index)).withdrawn).toEqual({
    'v1.2.2': expect.stringMatching(/^loses.*data$/),
  });
  expect(JSON.stringify(readIndex(JSON.stringify(index)))).not.toContain('u001b');
});

test('an index may end with `---`, and start with a comment about apiVersion', () => {
  expect(readIndex(`# apiVersion: v1\n---\n${LISTED}\n---\n`)).toEqual(readIndex(LISTED));
});

test.each([
  ['HTML', '\n<!doctype html><html>', 'sent HTML instead of an index'],
  ['nothing', '', 'the index is not an object'],
  ['no YAML', '{', 'the index cannot be read as YAML: '],
  ['no version', 'downloadURLs: []', 'no valid version'],
  ['no downloads', 'version: v1.2.3', 'no valid downloadurls'],
  ['a number as version', 'version: 1.36\ndownloadURLs: []', 'no valid version'],
  [
    'a word as version',
    'version: latest\ndownloadURLs: []',
    'version "latest"; expected one such as v1.36.3+k0s.0',
  ],
  ['a path', LISTED.replace('https://example.com/k0s', '/k0s'), 'a download that is not a URL'],
  [
    'a file',
    LISTED.replace('https://example.com/k0s', 'file:///etc/shadow'),
    'a download that is not a URL',
  ],
  ['half a hash', LISTED.replace(SHA.toUpperCase(), 'abab'), 'a sha256 that is not 64'],
])('%s is refused', (_name, body, problem) => {
  expect(() => readIndex(body)).toThrow(problem);
});

test.each([
  '\t: \n',
  'a: b: ',
  '---\n',
  '-\n',
  '"',
  '*a ',
  '&a ',
  '!!a ',
  '[',
  '{',
  '? ',
  '- a:\n',
])(
  'the largest index, of %j alone, is refused, and costs no more than an index that is read',
  (part) => {
    const body = part.repeat(LARGEST / part.length);
    const refuse = (): void => expect(() => readIndex(body)).toThrow('the index');
    // Each of these texts takes one to three times as long as `LARGE`. If the parser printed the place of each error,
    // some texts would take eight to sixteen times as long.
    expect(costFactor(refuse, () => readIndex(LARGE), 6)).toBeLessThan(6);
  },
);
