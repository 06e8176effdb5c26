/** Runs `refit bundle`. Downloads as the agent does: resumed, and verified. */
import * as files from 'node:fs/promises';
import { fetchVerified } from '../agent/download/fetch.ts';
import { openPartial } from '../agent/download/partial-file.ts';
import type { CommandCall } from '../cli/program.ts';
import { VERSION } from '../cli/version.ts';
import { type FileDownload, packBundle, publishBundle, unpackBundle } from '../updates/bundle/publish.ts';
import { systemClock as clock } from '../util/clock.ts';
import { RefitError } from '../util/errors.ts';
import { stderrLogger } from '../util/log.ts';

interface BundleFlags {
  readonly file?: string;
  readonly pack?: string;
  readonly unpack?: string;
}

const LIMITS = { maxBytes: 8 * 1024 ** 3, reserveBytes: 256 * 1024 ** 2, stallMs: 60_000, totalMs: 6 * 3_600_000 };

export async function runBundle(directory: string, flags: BundleFlags, { write, abort }: CommandCall): Promise<void> {
  const { file, pack, unpack } = flags;
  if (file === undefined && pack === undefined && unpack === undefined)
    throw new RefitError('REFIT_USAGE', 'name what to do: --file, --unpack or --pack');
  if (unpack !== undefined) await unpackBundle(unpack, directory);
  const say = (line: string): void => write(`${line}\n`);
  if (file !== undefined) await publishBundle({ file, directory, download: downloader(abort), say });
  if (pack !== undefined) await packBundle(directory, pack);
  write(`${directory} is ready for \`refit serve\`\n`);
}

function downloader(abort: AbortSignal): FileDownload {
  const tools = { clock, random: Math.random, log: stderrLogger('warn'), files, environment: process.env, abort };
  return async (url, sha256, path) => {
    const paths = { part: path, record: `${path}.json` };
    await using part = await openPartial({ url, sha256 }, paths, files);
    const request = { url, sha256, paths, userAgent: `refit/${VERSION}`, limits: LIMITS };
    await fetchVerified({ ...request, ...tools, part, inspect: async () => await Promise.resolve({ isHere: false }) });
    await part.seal(0o644);
    await files.rm(paths.record, { force: true });
  };
}
