/** Tests which downloads are refused, and which downloads only cause a warning. */
import { expect, test } from 'vitest';
import { buildStage } from '../../../test/support/builders/stages.ts';
import type { Payload, Stage } from '../model/rollout.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../policy/rollout-policy.ts';
import {
  hasOneOf,
  payloadProblems,
  readRefusedDownloads,
  refusedDownloads,
  unverifiedDownloads,
} from './downloads.ts';

const SHA256 = 'a'.repeat(64);
const GOOD: Payload = { url: 'https://example.com/file', sha256: SHA256 };
const UNHASHED: Payload = { url: 'https://example.com/file' };
const PLAIN: Payload = { url: 'HTTP://example.com/file', sha256: SHA256 };
const NEITHER: Payload = { url: 'http://example.com/file' };

/** Returns two stages for each command. Both have the payloads of the command, as in the stages that dialects build. */
function stages(...commands: readonly Record<string, Payload>[]): Stage[] {
  return commands.flatMap((payloads, command) => [
    buildStage('controller', ['c1'], { command, payloads }),
    buildStage('worker', ['w1', 'w2'], { command, payloads }),
  ]);
}

function policy(more: Partial<RolloutPolicy>): RolloutPolicy {
  return { ...DEFAULT_POLICY, name: 'strict', ...more };
}

const HASH = { requireSha256: true };
const HTTPS = { requireHttps: true };
const hashless = (where: string): string =>
  `${where} has no sha256, and UpgradePolicy strict requires one; to allow this, set spec.payloads.requireSha256: false in the policy`;
const plain = (where: string): string =>
  `${where} comes over plain http, and UpgradePolicy strict requires https; to allow this, set spec.payloads.requireHttps: false in the policy`;
/** Names a download of a plan with one command. */
const only = (platform = 'linux-amd64'): string => `the download for ${platform}`;
/** Names a download of a plan with several commands. */
const of = (command: number, platform = 'linux-amd64'): string =>
  `the download of spec.commands[${command}] for ${platform}`;

test.each<[string, Partial<RolloutPolicy>, Stage[], string[]]>([
  ['nothing is asked', {}, stages({ 'linux-amd64': NEITHER }), []],
  [
    'hash and https are asked and there',
    { ...HASH, ...HTTPS },
    stages({ 'linux-amd64': GOOD }),
    [],
  ],
  [
    'a policy that requires a hash reports a download without a hash',
    HASH,
    stages({ 'linux-amd64': UNHASHED }),
    [hashless(only())],
  ],
  [
    'a hash makes up for plain http, where only a hash is asked',
    HASH,
    stages({ 'linux-amd64': PLAIN }),
    [],
  ],
  [
    'a policy that requires https reports a download over plain http, also in upper case',
    HTTPS,
    stages({ 'linux-amd64': PLAIN }),
    [plain(only())],
  ],
  [
    'neither',
    { ...HASH, ...HTTPS },
    stages({ 'linux-amd64': NEITHER }),
    [hashless(only()), plain(only())],
  ],
  [
    'one platform of the second command',
    HASH,
    stages({ 'linux-amd64': GOOD }, { 'linux-amd64': GOOD, 'linux-arm64': UNHASHED }),
    [hashless(of(1, 'linux-arm64'))],
  ],
  ['a stage that downloads nothing', HASH, [{ ...buildStage('worker', ['w1']), payloads: {} }], []],
])('%s', (_, more, given, messages) => {
  const problems = payloadProblems(given, policy(more));
  expect(problems.map(({ message }) => message)).toEqual(messages);
  expect(problems.filter(({ code }) => code !== 'Unverified')).toEqual([]);
  expect(readRefusedDownloads(messages.join('; '))).toEqual(problems.flatMap(refusedDownloads));
});

test.each(['linux-amd64', 'for', 'has no sha256', 'a b'])(
  'the refused downloads are read again from their sentences for the platform %j',
  (platform) => {
    const given = stages({ [platform]: NEITHER }, { [platform]: GOOD });
    const problems = payloadProblems(given, policy({ ...HASH, ...HTTPS }));
    const refused = [
      { command: 0, platform, fault: 'noSha256' },
      { command: 0, platform, fault: 'plainHttp' },
    ];
    expect(problems.flatMap(refusedDownloads)).toEqual(refused);
    expect(problems.flatMap(({ message }) => readRefusedDownloads(message))).toEqual(refused);
  },
);

test.each<[string, Stage[], boolean]>([
  ['stays as it was', stages({ 'linux-amd64': UNHASHED }), true],
  ['has a sha256 now', stages({ 'linux-amd64': GOOD }), false],
  ['has another fault now', stages({ 'linux-amd64': PLAIN }), false],
  ['is for another platform now', stages({ 'linux-arm64': UNHASHED }), false],
  ['is one of several commands now', stages({ 'linux-amd64': UNHASHED }, {}), false],
])('whether a plan still has the refused download, if the download %s', (_, given, expected) => {
  const refused = [{ command: undefined, platform: 'linux-amd64', fault: 'noSha256' }] as const;
  expect(hasOneOf(refused, given)).toBe(expected);
});

test('each download without a hash is reported once', () => {
  expect(
    unverifiedDownloads(
      stages({ 'linux-amd64': UNHASHED, 'linux-arm64': NEITHER }, { 'linux-amd64': GOOD }),
    )?.message,
  ).toBe(
    'these files have no sha256, so nodes run them unverified: the download of spec.commands[0] for linux-amd64, ' +
      'the download of spec.commands[0] for linux-arm64 (over plain http)',
  );
  expect(unverifiedDownloads(stages({ 'linux-amd64': PLAIN }))).toBeUndefined();
});
