/** Tests that a text is one word of a shell, whatever it contains. */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { shellWord } from './shell-word.ts';

test.each(['plain', 'a b', `it's`, '$(id)', '`id`', '', 'a\\b', '"', '*', 'a;b'])(
  'a shell prints %j as it is',
  (text) => {
    const printed = execFileSync('sh', ['-c', `printf %s ${shellWord(text)}`], {
      encoding: 'utf8',
    });
    expect(printed).toBe(text);
  },
);
