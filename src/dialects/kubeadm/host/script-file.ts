/** Reads the shell scripts that hosts run. A build puts their text in the place of this file, as of src/install/deploy-files.ts. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export function scriptFile(name: string): string {
  return readFileSync(join(import.meta.dirname, 'scripts', name), 'utf8');
}
