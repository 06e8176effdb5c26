/** Requests for downloads into a directory, and the tools that carry them out. */
import * as files from 'node:fs/promises';
import { join } from 'node:path';
import type { FetchTools } from '../../../src/agent/download/fetch.ts';
import type { BundleRequest } from '../../../src/agent/download/place-bundle.ts';
import type { DownloadRequest } from '../../../src/agent/download/stage-binary.ts';
import { fileTrust } from '../../../src/agent/state/trusted-path.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { silentLogger } from '../../../src/util/log.ts';
import { SkewedClock } from '../clock/skewed-clock.ts';

const userAgent = 'refit-agent/0 (worker1)';

export function buildDownloadRequest(
  directory: string,
  more: Partial<DownloadRequest> & Pick<DownloadRequest, 'url' | 'sha256' | 'limits'>,
): DownloadRequest {
  return {
    staged: join(directory, 'k0s.tmp'),
    prepare: async () => await Promise.resolve(),
    paths: { part: join(directory, '.k0s.tmp.part'), record: join(directory, 'download.json') },
    userAgent,
    ...more,
  };
}

export function buildBundleRequest(
  directory: string,
  more: Partial<BundleRequest> & Pick<BundleRequest, 'url' | 'sha256' | 'limits'>,
): BundleRequest {
  return {
    version: 'v1',
    imagesDirectory: join(directory, 'data', 'images'),
    record: join(directory, 'download-airgap.json'),
    list: join(directory, 'airgap-bundles.json'),
    fileTrust,
    userAgent,
    ...more,
  };
}

/** Pauses take a thousandth of their time. */
export function buildFetchTools(more: Partial<FetchTools> = {}): FetchTools {
  return {
    clock: new SkewedClock(systemClock, { pauses: 1 / 1000 }),
    random: () => 0,
    log: silentLogger,
    environment: {},
    files,
    abort: new AbortController().signal,
    ...more,
  };
}
