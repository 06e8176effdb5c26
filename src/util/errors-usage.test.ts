/**
 * Tests the error for a command line that Node's own parser refuses: one sentence, with the words
 * of the user unchanged.
 */
import { parseArgs } from 'node:util';
import { expect, test } from 'vitest';
import { usageError } from './errors.ts';

test.each([
  [['--x'], "Unknown option '--x'"],
  [['--a. B'], "Unknown option '--a. B'"],
  [['up'], "Unexpected argument 'up'"],
  [['--nodes'], "Option '--nodes <value>' argument missing"],
  [['--nodes', '--help'], "Option '--nodes' argument is ambiguous"],
  [['--help=1'], "Option '-h, --help' does not take an argument"],
])('%j', (args, message) => {
  const parse = (): void => {
    try {
      parseArgs({
        args,
        options: { nodes: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
      });
    } catch (error) {
      throw usageError(error);
    }
  };
  expect(parse).toThrow(expect.objectContaining({ code: 'REFIT_USAGE', message }));
});
