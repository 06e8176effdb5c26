/** Tests the annotation with which a leader requests a version in advance. Only content that can be verified is read. */
import { expect, test } from 'vitest';
import type { SignalCommand } from './annotations.ts';
import { DOWNLOAD_CHECK_ANNOTATION, PREFETCH_ANNOTATION } from './names.ts';
import {
  decodeDownloadCheck,
  decodePrefetch,
  downloadCheckId,
  encodeDownloadCheck,
  encodePrefetch,
} from './prefetch.ts';

const COMMAND: SignalCommand = {
  id: 1,
  kind: 'k0supdate',
  url: 'https://example.com/k0s',
  version: 'v1.36.3+k0s.2',
  sha256: 'ab'.repeat(32),
};
const WISH = {
  rollout: 'uid',
  command: COMMAND,
  policy: { requireHttps: true, diskReserveBytes: 5 },
} as const;

test('what was asked for comes back, with the rules for downloads and no others', () => {
  const policy = { ...WISH.policy, soakMs: 1, cordonFor: 'x' };
  expect(decodePrefetch(encodePrefetch({ ...WISH, policy }))).toEqual(WISH);
});

const written = (change: object): Record<string, string> => {
  const text = encodePrefetch(WISH)[PREFETCH_ANNOTATION] ?? '';
  return { [PREFETCH_ANNOTATION]: JSON.stringify({ ...(JSON.parse(text) as object), ...change }) };
};
const bare = { url: COMMAND.url, version: COMMAND.version };

test.each<[string, Record<string, string> | undefined]>([
  ['no annotation', {}],
  ['no annotations', undefined],
  ['no JSON', { [PREFETCH_ANNOTATION]: '{' }],
  ['no rollout', written({ rollout: undefined })],
  ['no sha256', written({ commands: [{ id: 1, k0supdate: bare }] })],
  [
    'a sha256 of another type',
    written({ commands: [{ id: 1, k0supdate: { ...bare, sha256: 1 } }] }),
  ],
  ['a bundle', written({ commands: [{ id: 1, airgapupdate: { ...bare, sha256: 'ab' } }] })],
])('%s: nothing is asked for', (_what, annotations) => {
  expect(decodePrefetch(annotations)).toBeUndefined();
});

test('a policy that is none changes nothing', () => {
  expect(decodePrefetch(written({ policy: 'x' }))).toEqual({ ...WISH, policy: {} });
});

const CHECK = {
  rollout: 'uid',
  commands: [COMMAND, { ...COMMAND, id: 2, kind: 'airgapupdate' }],
  policy: WISH.policy,
} as const;

test('a check comes back with the rules for downloads; another one has another id', () => {
  const encoded = encodeDownloadCheck({ ...CHECK, policy: { ...CHECK.policy, soakMs: 1 } });
  expect(decodeDownloadCheck(encoded)).toEqual(CHECK);
  const other = encodeDownloadCheck({
    ...CHECK,
    commands: [{ ...COMMAND, url: 'https://example.com/k1s' }],
  });
  expect(downloadCheckId(encoded)).toMatch(/^[0-9a-f]{16}$/);
  expect(downloadCheckId(other)).not.toBe(downloadCheckId(encoded));
  // An agent that supports only downloads in advance, and not the check of a download, ignores this text.
  expect(decodePrefetch(encoded)).toBeUndefined();
});

test('a check that somebody else wrote is bounded, and nothing of it that is no command is asked for', () => {
  const many = encodeDownloadCheck({
    ...CHECK,
    commands: Array.from({ length: 1_000 }, () => COMMAND),
  });
  expect(decodeDownloadCheck(many)?.commands).toHaveLength(8);
  const of = (value: unknown) =>
    decodeDownloadCheck({ [DOWNLOAD_CHECK_ANNOTATION]: JSON.stringify(value) });
  expect([
    of(1),
    of({ rollout: 'uid' }),
    of({ commands: [] }),
    of({ rollout: 'uid', commands: [{ id: 1 }, 'x'] }),
  ]).toEqual([undefined, undefined, undefined, { rollout: 'uid', commands: [], policy: {} }]);
});
