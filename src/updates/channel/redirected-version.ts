/** Asks a channel whose answer is a redirect: the version is the last segment of the URL that it leads to. */
import type { IncomingMessage } from 'node:http';
import { basename } from 'node:path/posix';
import { askHead, type ServerTools } from './ask-server.ts';

const MOST_ANSWERS = 1_000;

export class RedirectChannels {
  readonly #tools: ServerTools;
  readonly #answers = new Map<string, { readonly etag: string | undefined; readonly version: string }>();

  constructor(tools: ServerTools) {
    this.#tools = tools;
  }

  /** The version as the channel writes it. `latestVersion`: empty if none is known yet. */
  async ask(channel: string, clusterId: string, latestVersion: string): Promise<string> {
    const told = latestVersion === '' ? {} : { 'X-SUC-Latest-Version': latestVersion };
    const known = this.#answers.get(channel);
    const headers = { 'X-SUC-Cluster-ID': clusterId, ...told };
    const response = await askHead({ url: channel, headers, known: known?.etag }, this.#tools);
    if (response.statusCode === 304 && known?.etag !== undefined) return known.version;
    const version = versionIn(channel, response);
    // Plans may name any number of channels.
    if (this.#answers.size > MOST_ANSWERS) this.#answers.clear();
    this.#answers.set(channel, { etag: response.headers.etag, version });
    return version;
  }
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
