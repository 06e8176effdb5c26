/** Builds a script for a host from three parts: its values, the files that it uses, and its own text. */

import { RefitError } from '../../../util/errors.ts';
import { quotedWord } from '../../../util/shell-word.ts';
import { scriptFile } from './script-file.ts';

/**
 * The values of a script. The keys are the names that the header of the script declares. An empty text means that there
 * is no value.
 */
export type ScriptValues = Readonly<Record<string, string | number>>;

export interface ScriptInput {
  readonly name: string;
  readonly example: string;
  readonly meaning: string;
}

/**
 * Returns the script `name` with a line `KEY='value'` for each of its values, before all other text.
 * @throws RefitError if a declared value is missing, a value is not declared, or a value has a NUL byte
 */
export function filledScript(name: string, values: ScriptValues): string {
  const declared = inputsOf(name).map((input) => input.name);
  const missing = declared.filter((key) => !Object.hasOwn(values, key));
  const unknown = Object.keys(values).filter((key) => !declared.includes(key));
  if (missing.length > 0)
    throw wrongValues(name, `got no value for ${missing.join(', ')}, which its header declares`);
  if (unknown.length > 0)
    throw wrongValues(
      name,
      `got a value for ${unknown.join(', ')}, which its header does not declare`,
    );
  const lines = Object.entries(values).map(([key, value]) => `${key}=${quoted(String(value))}\n`);
  return `${lines.join('')}${wholeScript(name)}`;
}

function wrongValues(name: string, problem: string): RefitError {
  return new RefitError('REFIT_FILE', `the host script ${name} ${problem}`);
}

/**
 * Returns the text of a script after the texts of the files that it uses. Each file appears once, after the files that it uses
 * itself.
 */
export function wholeScript(name: string): string {
  const order = new Set<string>();
  addWithUsed(name, order);
  return [...order].map(scriptFile).join('');
}

function addWithUsed(name: string, order: Set<string>): void {
  if (order.has(name)) return;
  for (const used of usedBy(name)) addWithUsed(used, order);
  order.add(name);
}

/** Returns the files that a line `# uses: parts/a.sh b.sh` in the header names. */
export function usedBy(name: string): string[] {
  const [, names = ''] = /^# uses: (.*)$/m.exec(headerOf(name)) ?? [];
  return names.split(' ').filter((used) => used !== '');
}

/** Returns the inputs that the header declares. Below `# input:`, each line has the form `#   KEY=example  meaning`. */
export function inputsOf(name: string): ScriptInput[] {
  const [, lines = ''] = headerOf(name).split('# input:\n');
  return [...lines.matchAll(/^# {3}([A-Z][A-Z0-9_]*)=((?:\S| (?! ))*) {2}(\S.*)$/gm)].map(
    ([, key = '', example = '', meaning = '']) => ({ name: key, example, meaning }),
  );
}

/** Returns the comments at the beginning of a file. */
export function headerOf(name: string): string {
  return /^(?:#.*\n)*/.exec(scriptFile(name))?.[0] ?? '';
}

/** Returns the text as one word of a POSIX shell. Every value in a script is quoted by this function. */
export function quoted(text: string): string {
  if (text.includes('\0'))
    throw new RefitError('REFIT_FILE', 'a value for a script on a host contains a NUL byte');
  return quotedWord(text);
}
