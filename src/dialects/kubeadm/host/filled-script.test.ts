/** Proves how a script for a host is built, and that its header declares all of its input. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { filledScript, headerOf, inputsOf, quoted, usedBy, wholeScript } from './filled-script.ts';
import { scriptFile } from './script-file.ts';

const NAMES = globSync('**/*.sh', { cwd: join(import.meta.dirname, 'scripts') });

describe('a script', () => {
  test('begins with its values, then comes each file that it uses, once', () => {
    const values = { BODY: "it's", BUSY: 75, WAIT: 5 };
    expect(filledScript('detached.sh', values)).toBe(
      `BODY='it'\\''s'\nBUSY='75'\nWAIT='5'\n${scriptFile('detached.sh')}`,
    );
    const files = ['parts/prelude.sh', 'parts/api-server.sh', 'readyz.sh'];
    expect(wholeScript('readyz.sh')).toBe(files.map(scriptFile).join(''));
  });

  test('lacks no value that its header declares', () => {
    expect(() => filledScript('detached.sh', { BODY: '' })).toThrow(
      expect.objectContaining({
        code: 'REFIT_FILE',
        message:
          'the host script detached.sh got no value for BUSY, WAIT, which its header declares',
      }),
    );
  });

  test('gets no value that its header does not declare', () => {
    expect(() => filledScript('serving.sh', { PATH: '/x', 'A;b': '' })).toThrow(
      'the host script serving.sh got a value for PATH, A;b, which its header does not declare',
    );
  });
});

test.each(NAMES)(
  'the header of %s says what it does, and each of its lines can be read',
  (name) => {
    const [first = '', ...lines] = headerOf(name).trimEnd().split('\n');
    expect(first).toMatch(/^# .*\w/);
    expect(first).not.toMatch(/^# (uses|input|shellcheck)\b/);
    const at = lines.indexOf('# input:');
    const declared = at < 0 ? [] : lines.slice(at + 1);
    expect(inputsOf(name)).toHaveLength(declared.length);
    for (const used of usedBy(name)) expect(NAMES).toContain(used);
  },
);

test('a value is one word of a shell, and holds no NUL byte', () => {
  expect(quoted("it's $(x)")).toBe(`'it'\\''s $(x)'`);
  expect(() => quoted('a\0b')).toThrow(
    expect.objectContaining({
      code: 'REFIT_FILE',
      message: 'a value for a script on a host contains a NUL byte',
    }),
  );
});
