/**
 * Reads files of deploy/. A build replaces this module with a module that contains the text of these files, so that no
 * second copy of each file has to be maintained.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export function deployFile(name: string): string {
  return readFileSync(join(import.meta.dirname, '..', '..', 'deploy', name), 'utf8');
}
