/** Tests that the details of a reason are read again from each sentence that has details. */
import { expect, test } from 'vitest';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { because, type Reason } from '../model/reasons.ts';
import { reasonAbout } from './about-target.ts';
import { titleOfCheck } from './health-check.ts';
import { hookFailed } from './hook.ts';
import { recordedReason, toRecord, withReasonRead } from './recorded.ts';

const policy = { name: 'nightly' };
const NAMES = ['errors', 'a.b-c', '0'];

test.each(NAMES)(
  'the reasons about a check and a hook with the name %s are read as said',
  (name) => {
    const ofCheck = { policy: 'nightly', check: name };
    const ofHook = { policy: 'nightly', hook: name };
    const said: Reason[] = [
      because('HealthCheckFailing', `${titleOfCheck(name, policy)} fails: 1`, ofCheck),
      because(
        'HookFailed',
        `w1: ${hookFailed({ name }, policy, 'the hook x of y failed: z')}`,
        ofHook,
      ),
    ];
    for (const { code, message, details } of said) {
      expect(recordedReason({ code, message })).toEqual({ code, message, details });
      // A record of another leader has no code.
      expect(recordedReason({ code: 'TargetFailed', message })).toEqual({ code, message, details });
    }
  },
);

test.each<Reason>([
  because('TargetFailed', 'the download failed: 404'),
  because('DrainTooLong', `w1 was not drained: ${titleOfCheck('errors', policy)} fails`),
])('a reason of another kind stays as it is: $message', (reason) => {
  expect(recordedReason(reason)).toBe(reason);
});

test('a reason whose details are known is not read again', () => {
  const details = { policy: 'nightly', hook: 'errors' };
  const reason = because('HookFailed', hookFailed({ name: 'other' }, policy, 'x'), details);
  expect(recordedReason(reason)).toBe(reason);
});

const refusedDownload = { command: undefined, platform: 'linux-amd64', fault: 'noSha256' } as const;

test.each<Reason>([
  because('TargetFailed', 'w1: the download failed: 404'),
  because('HookFailed', hookFailed({ name: 'errors' }, policy, 'exit code 1'), {
    policy: 'nightly',
    hook: 'errors',
  }),
  because('HealthCheckFailing', `${titleOfCheck('errors', policy)} fails: 1`, {
    policy: 'nightly',
    check: 'errors',
  }),
  because('SkippedMinor', 'w1 would skip v1.37 on its way to v1.38.0', { versions: ['v1.38.0'] }),
  because(
    'Unverified',
    'the download for linux-amd64 has no sha256, and UpgradePolicy p requires',
    {
      downloads: [refusedDownload],
    },
  ),
])(
  'the reason of a rollout that is read from a record is the reason that was said: $code',
  (said) => {
    const reason = reasonAbout('w1', said);
    const rollout = buildRollout([buildStage('worker', ['w1', 'w10'])], { reason });
    const read = withReasonRead({ ...rollout, reason: toRecord(reason) });
    expect(read.reason).toEqual(reason);
    expect(withReasonRead(read)).toBe(read);
  },
);

test('a rollout whose reason is about nothing that code reads stays the same object', () => {
  const stages = [buildStage('worker', ['w1'])];
  const done = buildRollout(stages, { reason: because('Aborted', 'aborted: wrong version') });
  expect(withReasonRead(done)).toBe(done);
  const running = buildRollout(stages);
  expect(withReasonRead(running)).toBe(running);
});
