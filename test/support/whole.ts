/** Leaves a sample of tests that are alike, unless all are asked for. */
import { test } from 'vitest';
import { WHOLE } from '../../tools/count-reporter.ts';

export { WHOLE };

/** `test` for the first of every `share` tests of a file; the others run with the whole. */
export function testOneIn(share: number): (name: string, body: () => Promise<void>) => void {
  let count = 0;
  return (name, body) => {
    if (count++ % share === 0 || WHOLE) test(name, body);
  };
}
