/** Reads files of deploy/. A build puts their text in the place of this file, so that there is one copy of each. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export function deployFile(name: string): string {
  return readFileSync(join(import.meta.dirname, '..', '..', 'deploy', name), 'utf8');
}
