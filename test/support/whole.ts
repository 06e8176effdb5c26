/** Runs only a sample of similar tests, unless all tests are requested. */
import { test } from 'vitest';
import { WHOLE } from '../../tools/count-reporter.ts';

export { WHOLE };

/**
 * Returns a `test` function that registers the first of every `share` tests of a file. All tests are registered if the
 * whole is requested.
 */
export function testOneIn(share: number): (name: string, body: () => Promise<void>) => void {
  let count = 0;
  return (name, body) => {
    if (count++ % share === 0 || WHOLE) test(name, body);
  };
}
