/** Reads more flags of the agent from a file on its host, which `--config` names. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { messageOf, RefitError } from '../util/errors.ts';
import { readFlags } from './flags.ts';
import { assertTrustedPath } from './state/trusted-path.ts';

/** Returns the path of the file with more flags; undefined for --help. */
export function configPath(args: readonly string[]): string | undefined {
  const { help, config } = readFlags(args);
  return help === true ? undefined : resolve(config);
}

/**
 * Returns the lines of the file (each is `name: value`) as arguments; no arguments if the file does not exist. Throws
 * REFIT_FILE if users other than root could change the file.
 */
export async function readFlagsFile(path: string): Promise<string[]> {
  try {
    // Guard flags-path. Nobody else chooses the flags of the agent.
    await assertTrustedPath(path);
    const args = (await readFile(path, 'utf8'))
      .split('\n')
      .flatMap((line, index) => argumentsIn(line, index + 1));
    readFlags(args);
    return args;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new RefitError('REFIT_FILE', `cannot use ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** Returns no argument for a comment, for an empty line, and for a switch that is `false`. */
function argumentsIn(line: string, number: number): string[] {
  const text = line.replace(/(^|\s)#.*/, '').trim();
  if (text === '') return [];
  const [, name, quoted = ''] = /^([a-z][a-z0-9-]*):\s+(\S.*)$/.exec(text) ?? [];
  if (name === undefined)
    throw new Error(
      `line ${number} is "${text}": write a flag and its value, such as require-https: true`,
    );
  const value = quoted.replace(/^(["'])(.*)\1$/, '$2');
  if (value === 'false') return [];
  return [value === 'true' ? `--${name}` : `--${name}=${value}`];
}
