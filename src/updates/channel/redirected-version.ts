/** Asks a channel whose answer is a redirect: the version is the last segment of the URL that it leads to. */
import type { IncomingMessage } from 'node:http';
import { basename } from 'node:path/posix';
import { getOnce } from '../../http/http-get.ts';
import type { Environment } from '../../http/proxy-choice.ts';

export interface Asking {
  /** UID of the namespace `kube-system`, which identifies the cluster. */
  readonly clusterId: string;
  /** Empty if none is known yet. */
  readonly latestVersion: string;
  /** Milliseconds; the original has no timeout. */
  readonly timeoutMs: number;
  /** Names the proxies. */
  readonly environment: Environment;
}

/** The version as the channel writes it. Reads no body. Rejects on an error status or a timeout. */
export async function askChannel(channel: string, asking: Asking): Promise<string> {
  const { clusterId, latestVersion, timeoutMs, environment } = asking;
  const known = latestVersion === '' ? {} : { 'X-SUC-Latest-Version': latestVersion };
  const headers = { 'X-SUC-Cluster-ID': clusterId, ...known };
  const response = await getOnce(new URL(channel), { headers, environment }, AbortSignal.timeout(timeoutMs));
  response.destroy();
  return versionIn(channel, response);
}

/** The last path segment: of the redirect target for a 302, of the channel's own URL for any other status below 400. */
export function versionIn(
  channel: string,
  {
    statusCode = 0,
    statusMessage = '',
    httpVersion,
    headers: { location },
  }: Pick<IncomingMessage, 'statusCode' | 'statusMessage' | 'httpVersion' | 'headers'>,
): string {
  if (statusCode === 302) {
    if (location === undefined) throw new Error('302 response missing Location header');
    return lastPart(decodeURIComponent(new URL(location, channel).pathname));
  }
  if (statusCode >= 200 && statusCode < 400) return lastPart(channel);
  throw new Error(`unexpected response: HTTP/${httpVersion} ${statusCode} ${statusMessage}`.trimEnd());
}

function lastPart(path: string): string {
  if (path === '') return '.';
  return basename(path) || '/';
}
