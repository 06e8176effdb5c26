/** Owns the journal on the disk: one JSON file, replaced whole and synced before the agent relies on it. */
import * as fsPromises from 'node:fs/promises';
import { RefitError } from '../../util/errors.ts';
import { isRecord } from '../../util/json.ts';
import type { Journal } from '../journal.ts';
import { IDLE } from '../journal.ts';
import type { Files } from './durable-files.ts';
import { writeDurably } from './durable-files.ts';

/** Raised when older agents could misread what newer ones write. */
const FORMAT = 1;

/** Idle where there is no journal yet; refuses one that it cannot understand rather than forget half-done work. */
export async function loadJournal(path: string, files: Pick<Files, 'readFile'> = fsPromises): Promise<Journal> {
  const text = await files.readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw new RefitError('REFIT_FILE', `cannot read the journal ${path}`, { cause: error });
  });
  if (text === undefined) return IDLE;
  const file = parse(text);
  if (file?.format === FORMAT) return file.journal;
  throw new RefitError('REFIT_FILE', `${path} is not a journal of this agent: remove it once the host is in order`);
}

export async function saveJournal(path: string, journal: Journal, files?: Files): Promise<void> {
  await writeDurably(path, `${JSON.stringify({ format: FORMAT, journal })}\n`, files);
}

function parse(text: string): { format: unknown; journal: Journal } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && isRecord(value['journal'])
      ? { format: value['format'], journal: value['journal'] as unknown as Journal }
      : undefined;
  } catch {
    return undefined;
  }
}
