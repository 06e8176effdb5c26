/** A directory of releases and a running `refit serve` for it, in this process. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createMetrics } from '../../../src/runtime/metrics.ts';
import { publishBundle } from '../../../src/updates/bundle/publish.ts';
import {
  runUpdateServer,
  type UpdateServerOptions,
} from '../../../src/updates/server/update-server.ts';
import { systemClock as clock } from '../../../src/util/clock.ts';
import { defined } from '../../../src/util/json.ts';
import { type LogFields, silentLogger } from '../../../src/util/log.ts';

export interface RunningServer extends AsyncDisposable {
  readonly url: string;
  readonly metrics: ReturnType<typeof createMetrics>;
  /** The entries of the access log. */
  readonly requests: readonly LogFields[];
}

export async function startUpdateServer(
  directory: string,
  options: Partial<UpdateServerOptions> = {},
): Promise<RunningServer> {
  const stop = new AbortController();
  const metrics = createMetrics();
  const requests: LogFields[] = [];
  const started = Promise.withResolvers<number>();
  const info = (message: string, fields: LogFields = {}): void => {
    if (message === 'serving') started.resolve(Number(fields['port']));
    else requests.push(fields);
  };
  const own = { url: undefined, hosts: [], certificate: undefined, tokenFile: undefined };
  const log = { ...silentLogger, info };
  const running = runUpdateServer(
    { directory, address: '127.0.0.1:0', ...own, metrics, clock, log, ...options },
    stop.signal,
  );
  running.catch(started.reject);
  const port = await started.promise;
  return {
    url: `${options.certificate ? 'https' : 'http'}://127.0.0.1:${port}`,
    metrics,
    requests,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

export interface Published {
  readonly version: string;
  readonly bytes: Buffer;
  readonly percent?: number;
  readonly hold?: boolean;
  readonly withdrawn?: string;
}

/** Publishes the releases on `stable`, as `refit bundle` does. */
export async function publishReleases(
  directory: string,
  releases: readonly Published[],
): Promise<void> {
  await mkdir(directory, { recursive: true });
  for (const { version, bytes } of releases)
    await writeFile(join(directory, `${version}.bin`), bytes);
  const bundle = {
    releases: releases.map(({ version }) => ({
      version,
      files: [{ platform: 'linux-amd64', k0s: `${version}.bin` }],
    })),
    channels: {
      stable: releases.map(({ version, percent, hold, withdrawn }) =>
        defined({ version, percent, hold, withdrawn }),
      ),
    },
  };
  const file = join(directory, 'bundle.yaml');
  await writeFile(file, JSON.stringify(bundle));
  const never = async (): Promise<void> =>
    await Promise.reject(new Error('no URL is in this bundle'));
  await publishBundle({ file, directory, download: never, say: () => undefined });
}
