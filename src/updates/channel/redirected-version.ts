/** Asks a channel that answers with a 302. The version is the last segment of the URL in the redirect. */
import type { IncomingMessage } from 'node:http';
import { basename } from 'node:path/posix';
import { askHead, type ServerTools } from './ask-server.ts';

const MOST_ANSWERS = 1_000;
/**
 * A redirect with one of these statuses leads to another address of the same channel. The caller uses the answer of
 * that address.
 */
const MOVED = [301, 303, 307, 308];
const MOST_MOVES = 5;

/**
 * Returns a function that resolves with the version as the channel writes it. `latestVersion` is empty if no version is
 * known yet.
 */
export function redirectChannels(tools: ServerTools) {
  const answers = new Map<
    string,
    { readonly etag: string | undefined; readonly version: string }
  >();
  return async (channel: string, clusterId: string, latestVersion: string): Promise<string> => {
    const told = latestVersion === '' ? {} : { 'X-SUC-Latest-Version': latestVersion };
    const known = answers.get(channel);
    const headers = { 'X-SUC-Cluster-ID': clusterId, ...told };
    let url = channel;
    for (let moves = 0; moves <= MOST_MOVES; moves++) {
      const isFirst = url === channel;
      const response = await askHead(
        { url, headers, known: isFirst ? known?.etag : undefined },
        tools,
      );
      const moved = movedTo(url, response);
      if (moved !== undefined) {
        url = moved;
        continue;
      }
      if (response.statusCode === 304 && isFirst && known?.etag !== undefined) return known.version;
      const version = versionIn(url, response);
      // Plans may name any number of channels, so the memory is bounded.
      if (answers.size > MOST_ANSWERS) answers.clear();
      answers.set(channel, { etag: isFirst ? response.headers.etag : undefined, version });
      return version;
    }
    throw new Error(`more than ${MOST_MOVES} redirects; use the URL that the channel has moved to`);
  };
}

function movedTo(
  url: string,
  { statusCode = 0, headers: { location } }: IncomingMessage,
): string | undefined {
  if (!MOVED.includes(statusCode)) return undefined;
  if (location === undefined) throw new Error(`${statusCode} response missing Location header`);
  const next = new URL(location, url);
  if (url.startsWith('https:') && next.protocol !== 'https:')
    throw new Error(`${statusCode} response leads from https to ${next.protocol}//${next.host}`);
  return next.href;
}

type Head = Pick<IncomingMessage, 'statusCode' | 'statusMessage' | 'httpVersion' | 'headers'>;

/**
 * Returns the last path segment. For the status 302, this is the last segment of the redirect target. For any other
 * status below 400, it is the last segment of the URL itself.
 */
export function versionIn(channel: string, response: Head): string {
  const { statusCode = 0, statusMessage = '', httpVersion, headers } = response;
  const { location } = headers;
  if (statusCode === 302) {
    if (location === undefined) throw new Error('302 response missing Location header');
    return lastPart(decodeURIComponent(new URL(location, channel).pathname));
  }
  if (statusCode >= 200 && statusCode < 400) return lastPart(channel);
  throw new Error(
    `unexpected response: HTTP/${httpVersion} ${statusCode} ${statusMessage}`.trimEnd(),
  );
}

function lastPart(path: string): string {
  if (path === '') return '.';
  return basename(path) || '/';
}
