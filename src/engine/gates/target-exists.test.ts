/** Tests the reason of a target that does not exist. */
import { expect, test } from 'vitest';
import { input } from '../../../test/support/builders/gate-inputs.ts';
import { targetExists } from './target-exists.ts';

test('the reason of a name that no node has ends with the name that is meant', () => {
  const given = input('worker', { exists: false, meant: 'perhaps n2 is meant' });
  expect(targetExists.evaluate(given)).toMatchObject({
    kind: 'stop',
    reason: {
      code: 'TargetMissing',
      message: 'n1 does not exist as a worker: perhaps n2 is meant',
    },
  });
});
