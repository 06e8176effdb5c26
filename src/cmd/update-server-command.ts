/** Runs `refit serve`, which also serves health and metrics, and `refit bundle`, which downloads in the same way as the agent. */
import * as files from 'node:fs/promises';
import { join } from 'node:path';
import { fetchVerified } from '../agent/download/fetch.ts';
import { openPartial } from '../agent/download/partial-file.ts';
import type { CommandCall } from '../cli/program.ts';
import { VERSION } from '../cli/version.ts';
import { createHealthServer } from '../runtime/health.ts';
import { createMetrics } from '../runtime/metrics.ts';
import {
  type FileDownload,
  packBundle,
  problem,
  publishBundle,
  unpackBundle,
} from '../updates/bundle/publish.ts';
import { runUpdateServer } from '../updates/server/update-server.ts';
import { systemClock as clock } from '../util/clock.ts';
import { messageOf, RefitError } from '../util/errors.ts';
import { type LogLevel, stderrLogger } from '../util/log.ts';

interface ServeFlags {
  readonly address: string;
  readonly url?: string;
  readonly host?: readonly string[];
  readonly certDir?: string;
  readonly tokenFile?: string;
  readonly healthAddress?: string;
  readonly logLevel: LogLevel;
}

/** Serves the directory until `abort`. */
export async function runServe(
  directory: string,
  flags: ServeFlags,
  abort: AbortSignal,
): Promise<void> {
  const { address, url, host: hosts = [], certDir, tokenFile, healthAddress, logLevel } = flags;
  const metrics = createMetrics(VERSION);
  const certificate =
    certDir === undefined
      ? undefined
      : { certificate: join(certDir, 'tls.crt'), key: join(certDir, 'tls.key') };
  const health =
    healthAddress === undefined
      ? undefined
      : await createHealthServer({ address: healthAddress, metrics });
  const options = {
    directory,
    address,
    url,
    hosts,
    certificate,
    tokenFile,
    metrics,
    clock,
    log: stderrLogger(logLevel),
  };
  await Promise.all([runUpdateServer(options, abort), health?.run(abort)]);
}

const LIMITS = {
  maxBytes: 8 * 1024 ** 3,
  reserveBytes: 256 * 1024 ** 2,
  stallMs: 60_000,
  totalMs: 6 * 3_600_000,
};

type Flags = Partial<Readonly<Record<'file' | 'pack' | 'unpack', string>>>;

/** Creates the directory of an update server. Rejects with REFIT_USAGE if the flags contain no task. */
export async function runBundle(
  directory: string,
  { file, pack, unpack }: Flags,
  { write, abort }: CommandCall,
) {
  if (file === undefined && pack === undefined && unpack === undefined)
    throw new RefitError('REFIT_USAGE', 'no task was given: use --file, --unpack or --pack');
  const places = [unpack, pack, directory].filter(Boolean).join(' or ');
  const say = (line: string): void => write(`${line}\n`);
  try {
    if (unpack !== undefined) await unpackBundle(unpack, directory);
    if (file !== undefined)
      await publishBundle({ file, directory, download: downloader(abort), say });
    if (pack !== undefined) await packBundle(directory, pack);
  } catch (error) {
    // An error such as a full disk is not a bug, so it gets a message for users.
    throw error instanceof RefitError
      ? error
      : problem(`cannot use ${places}: ${messageOf(error)}`, error);
  }
  write(`${directory} is ready for \`refit serve\`\n`);
}

function downloader(abort: AbortSignal): FileDownload {
  const tools = {
    clock,
    random: Math.random,
    log: stderrLogger('warn'),
    files,
    environment: process.env,
    abort,
  };
  return async (url, sha256, path) => {
    const paths = { part: path, record: `${path}.json` };
    await using part = await openPartial({ url, sha256 }, paths, files);
    const request = { url, sha256, paths, userAgent: `refit/${VERSION}`, limits: LIMITS };
    await fetchVerified({
      ...request,
      ...tools,
      part,
      inspect: async () => await Promise.resolve({ isHere: false }),
    });
    await part.seal(0o644);
    await files.rm(paths.record, { force: true });
  };
}
