/** Tests that only the failures of the present run are remembered. */
import { expect, test } from 'vitest';
import { withFailures } from './failures.ts';
import { because } from './reasons.ts';

test('failures of another run are not remembered', () => {
  const first = { run: 'uid/a', reasons: { w1: because('TargetFailed', '404') } };
  const more = {
    run: 'uid/a',
    reasons: {
      w2: because('HealthCheckFailing', 'too many errors', { policy: 'p', check: 'errors' }),
    },
  };
  expect(Object.keys(withFailures(first, more).reasons)).toEqual(['w1', 'w2']);
  expect(withFailures(first, { ...more, run: 'uid/b' })).toEqual({ ...more, run: 'uid/b' });
});
