/**
 * Reads the shell scripts for hosts. Files in `parts/` run only as parts of the scripts that use them. A build replaces
 * this file with a file that contains the texts, as it does with src/install/deploy-files.ts.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const texts = new Map<string, string>();

/**
 * Returns the text of a script file. Each file is read only once, because every probe of a host is built from several files. `name` is a
 * path below `scripts/`, such as `probe.sh` or `parts/prelude.sh`.
 */
export function scriptFile(name: string): string {
  const known = texts.get(name);
  if (known !== undefined) return known;
  const text = readFileSync(join(import.meta.dirname, 'scripts', name), 'utf8');
  texts.set(name, text);
  return text;
}
