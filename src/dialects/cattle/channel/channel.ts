/** Reads a channel: a URL whose redirect ends in the latest version. */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { basename } from 'node:path/posix';

export interface Asking {
  /** UID of the namespace `kube-system`, which identifies the cluster. */
  readonly clusterId: string;
  /** Empty if none is known yet. */
  readonly latestVersion: string;
  /** Milliseconds; the original has no timeout. */
  readonly timeoutMs: number;
}

/** The version as the channel writes it. Rejects on an error status or a timeout. */
export async function askChannel(channel: string, { clusterId, latestVersion, timeoutMs }: Asking): Promise<string> {
  const url = new URL(channel);
  const headers = {
    'X-SUC-Cluster-ID': clusterId,
    ...(latestVersion === '' ? {} : { 'X-SUC-Latest-Version': latestVersion }),
  };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
    request(url, { headers, signal: AbortSignal.timeout(timeoutMs) }, resolve)
      .once('error', reject)
      .end();
  });
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
