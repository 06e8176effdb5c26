/**
 * Reads files of deploy/. A build replaces this file with one that contains their text, so that
 * there is one copy of each.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export function deployFile(name: string): string {
  return readFileSync(join(import.meta.dirname, '..', '..', 'deploy', name), 'utf8');
}
