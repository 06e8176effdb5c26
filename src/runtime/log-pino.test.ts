/** Shows the lines that long-lived processes write. */
import { expect, test } from 'vitest';
import { pinoLogger } from './log-pino.ts';

test('one JSON object a line, with the fields of every parent, and errors as text', () => {
  const lines: string[] = [];
  const logger = pinoLogger('info', { write: (line) => lines.push(line) });
  const error = new Error('outer', { cause: new Error('inner') });
  logger.child({ controller: 'plans' }).child({ key: 'a' }).warn('it failed', { error, attempt: 2 });
  logger.debug('too quiet');
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    {
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      level: 'warn',
      msg: 'it failed',
      controller: 'plans',
      key: 'a',
      error: 'outer: inner',
      attempt: 2,
    },
  ]);
  expect(lines[0]).toMatch(/\n$/);
});
