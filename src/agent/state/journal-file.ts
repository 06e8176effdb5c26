/**
 * Reads and writes the journal: one JSON file that is replaced as a whole and synced before the agent depends on it.
 */
import * as fsPromises from 'node:fs/promises';
import { RefitError } from '../../util/errors.ts';
import { isRecord, parseJson } from '../../util/json.ts';
import { IDLE, type Journal } from '../journal.ts';
import { type Files, isDiskFull, writeDurably } from './durable-files.ts';
import { unless } from './trusted-path.ts';

/**
 * The number of the journal's format. Increase it if an agent of another version could misread the new format, or if
 * the new agent could misread an older journal.
 */
const FORMAT = 2;

/**
 * Returns the journal; an idle journal if there is no file. Rejects if the journal cannot be read, because it would be
 * worse to forget an unfinished upgrade.
 */
export async function loadJournal(
  path: string,
  files: Pick<Files, 'readFile'> = fsPromises,
): Promise<Journal> {
  const text = await unless('ENOENT', files.readFile(path, 'utf8')).catch((cause: unknown) => {
    throw new RefitError('REFIT_FILE', `cannot read the journal ${path}`, { cause });
  });
  if (text === undefined) return IDLE;
  const value = parseJson(text);
  const { format, journal }: Record<string, unknown> = isRecord(value) ? value : {};
  // An idle journal means the same in every format.
  const isKnown =
    isRecord(journal) && (format === FORMAT || (format === 1 && journal['phase'] === 'idle'));
  if (isKnown) return journal as unknown as Journal;
  const advice = 'check that the service runs the right version, then remove the file';
  throw new RefitError(
    'REFIT_FILE',
    `${path} is not a journal that this agent can read: ${advice}`,
  );
}

/**
 * The size of the spare file, which is enough for several journals. If the disk is full, the spare file is removed, and the journal is
 * written in its place.
 */
const SPARE_BYTES = 64 * 1024;

/** Resolves once the journal is on the disk. If the disk is full, it removes the spare file and uses its disk space. */
export async function saveJournal(
  path: string,
  journal: Journal,
  files: Files = fsPromises,
): Promise<void> {
  const text = `${JSON.stringify({ format: FORMAT, journal })}\n`;
  await withSpare(path, async () => await writeDurably(path, text, files), files);
  await keepSpare(path, files);
}

/** Runs `work`. If the disk is full, it removes the spare file and runs `work` again. */
export async function withSpare(
  path: string,
  work: () => Promise<void>,
  files: Pick<Files, 'rm'> = fsPromises,
) {
  try {
    await work();
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    await files.rm(spareOf(path), { force: true });
    await work();
  }
}

/**
 * Creates the spare file. Call this before the journal is needed. If the disk is full, a later save of the journal
 * creates the spare file.
 */
export async function keepSpare(path: string, files: Files = fsPromises): Promise<void> {
  const spare = spareOf(path);
  const found = await files.lstat(spare).catch(() => undefined);
  if (found?.size === SPARE_BYTES) return;
  try {
    await writeDurably(spare, 'x'.repeat(SPARE_BYTES), files);
  } catch {
    await files.rm(`${spare}.new`, { force: true }).catch(() => undefined);
  }
}

function spareOf(path: string): string {
  return `${path}.spare`;
}
