/** Tests that one reason for several has the details of all that are of its kind. */
import { expect, test } from 'vitest';
import { because } from '../model/reasons.ts';
import { combined } from './combined.ts';

const skipped = because('SkippedMinor', 'w1 skips', { versions: ['v1.38.0'] });
const ahead = because('KubeletAhead', 'w2 is newer', { versions: ['v1.38.0', 'v1.39.0'] });
const unhashed = { command: 0, platform: 'linux-amd64', fault: 'noSha256' } as const;
const plain = { command: 1, platform: 'linux-arm64', fault: 'plainHttp' } as const;
const first = because('Unverified', 'no sha256', { downloads: [unhashed] });
const second = because('Unverified', 'plain http', { downloads: [plain] });

test('reasons of version rules become one reason with each refused version once', () => {
  expect(combined([skipped, first, ahead], 'all')).toEqual(
    because('SkippedMinor', 'all', { versions: ['v1.38.0', 'v1.39.0'] }),
  );
});

test('reasons about downloads become one reason with all refused downloads, and no version', () => {
  expect(combined([first, skipped, second], 'all')).toEqual(
    because('Unverified', 'all', { downloads: [unhashed, plain] }),
  );
});

test('a combined reason has the details of its first reason if they cannot be merged, or none', () => {
  const hook = because('HookFailed', 'x', { policy: 'nightly', hook: 'errors' });
  expect(combined([hook, skipped], 'all')).toEqual({ ...hook, message: 'all' });
  const plainReason = because('NoTargets', 'x');
  expect(combined([plainReason, skipped], 'all')).toEqual({ ...plainReason, message: 'all' });
  expect(combined([], 'all')).toBeUndefined();
});
