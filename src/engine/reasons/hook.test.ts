/** Tests that the sentence about a failed hook is found again, and no other sentence. */
import { expect, test } from 'vitest';
import { hookFailed, readHookFailure, titleOfHook } from './hook.ts';

const hook = { name: 'check-disk' };
const policy = { name: 'nightly' };

test.each(['', 'w1: ', 'the work was cancelled: '])(
  'the failure of a hook is found after %j',
  (before) => {
    const message = `${before}${hookFailed(hook, policy, 'exit code 1')}`;
    const details = { policy: 'nightly', hook: 'check-disk' };
    expect(readHookFailure({ message })).toEqual({ code: 'HookFailed', message, details });
  },
);

test.each([
  `${titleOfHook(hook, policy)} must succeed for w1: it runs`,
  `w1 failed because ${hookFailed(hook, policy, 'x')}`,
  'the hook failed: x',
  '',
])('%j is not the failure of a hook', (sentence) => {
  expect(readHookFailure({ message: sentence })).toBeUndefined();
});
