/**
 * Reads the shell scripts for hosts. Files in `parts/` run only inside the scripts that use them. A build replaces this file
 * with the texts, as it does with src/install/deploy-files.ts.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** `name` is a path below `scripts/`, such as `probe.sh` or `parts/prelude.sh`. */
export function scriptFile(name: string): string {
  return readFileSync(join(import.meta.dirname, 'scripts', name), 'utf8');
}
