/** Runs `refit serve`: the update server, and beside it health and metrics. */
import { join } from 'node:path';
import { VERSION } from '../cli/version.ts';
import { createHealthServer } from '../runtime/health.ts';
import { createMetrics } from '../runtime/metrics.ts';
import { runUpdateServer } from '../updates/server/update-server.ts';
import { systemClock as clock } from '../util/clock.ts';
import { type LogLevel, stderrLogger } from '../util/log.ts';

interface ServeFlags {
  /** `host:port`. */
  readonly address: string;
  /** What clients reach the server by; as they ask if not set. */
  readonly url?: string;
  /** Directory of `tls.crt` and `tls.key`; plain http if not set. */
  readonly certDir?: string;
  readonly tokenFile?: string;
  /** `host:port`; no HTTP server if not set. */
  readonly healthAddress?: string;
  readonly logLevel: LogLevel;
}

/** Runs until `abort`. */
export async function runServe(directory: string, flags: ServeFlags, abort: AbortSignal): Promise<void> {
  const { address, url, certDir, tokenFile, healthAddress, logLevel } = flags;
  const metrics = createMetrics(VERSION);
  const certificate =
    certDir === undefined ? undefined : { certificate: join(certDir, 'tls.crt'), key: join(certDir, 'tls.key') };
  const health =
    healthAddress === undefined ? undefined : await createHealthServer({ address: healthAddress, metrics });
  const options = { directory, address, url, certificate, tokenFile, metrics, clock, log: stderrLogger(logLevel) };
  await Promise.all([runUpdateServer(options, abort), health?.run(abort)]);
}
