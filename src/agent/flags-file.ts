/** Reads flags from a file of root's: one `name: value` a line, as in YAML. */
import { readFile } from 'node:fs/promises';
import { messageOf, RefitError } from '../util/errors.ts';
import { assertTrustedPath } from './state/trusted-path.ts';

/** The lines as arguments; none when the file is missing. Throws REFIT_FILE when others could change it. */
export async function readFlagsFile(path: string): Promise<string[]> {
  try {
    await assertTrustedPath(path);
    return (await readFile(path, 'utf8')).split('\n').flatMap((line, index) => argumentsIn(line, index + 1));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new RefitError('REFIT_FILE', `cannot use ${path}: ${messageOf(error)}`, { cause: error });
  }
}

function argumentsIn(line: string, number: number): string[] {
  const text = line.replace(/(^|\s)#.*$/, '').trim();
  if (text === '') return [];
  const [, name, quoted = ''] = /^([a-z][a-z0-9-]*):\s+(.+)$/.exec(text) ?? [];
  if (name === undefined)
    throw new Error(`line ${number} is "${text}": write a flag and its value, such as require-https: true`);
  const value = quoted.replace(/^(["'])(.*)\1$/, '$2');
  if (value === 'false') return [];
  return [value === 'true' ? `--${name}` : `--${name}=${value}`];
}
