/**
 * Reads the shell scripts for hosts. A build replaces this file with their texts, as it does with src/install/deploy-files.ts.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export function scriptFile(name: string): string {
  return readFileSync(join(import.meta.dirname, 'scripts', name), 'utf8');
}
