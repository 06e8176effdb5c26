/** Tests that the details of a reason are read again from each sentence that has details. */
import { expect, test } from 'vitest';
import { because, type Reason } from '../model/reasons.ts';
import { titleOfCheck } from './health-check.ts';
import { hookFailed } from './hook.ts';
import { recordedReason } from './recorded.ts';

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
