/** Says whether tests of many alike run whole; a sample of each kind is enough where nobody asks for more. */
import { test } from 'vitest';

export const WHOLE = process.env['REFIT_WHOLE'] === '1';

/** `test` for the first of every `share` tests of a file; the others run with the whole. */
export function testOneIn(share: number): (name: string, body: () => Promise<void>) => void {
  let count = 0;
  return (name, body) => {
    if (count++ % share === 0 || WHOLE) test(name, body);
  };
}
