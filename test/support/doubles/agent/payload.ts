/**
 * Downloads as the original does: with one GET, without a retry, and without resuming. The file gets its final name
 * only when it is complete.
 */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { open, rename, rm } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { basename } from 'node:path/posix';
import type { SignalCommand } from '../../../../src/signal/annotations.ts';

export interface PayloadRequest {
  readonly command: SignalCommand;
  readonly directory: string;
  /** The name of the finished file; if absent, the name that the server sends. */
  readonly name?: string;
  readonly userAgent: string;
  /** The download is given up when no byte has arrived for this many milliseconds. */
  readonly stallMs: number;
  readonly abort: AbortSignal;
}

/** Resolves with the path of the file; rejects for every other status than 200, a short body, and a wrong hash. */
export async function downloadPayload(request: PayloadRequest): Promise<string> {
  const { command, directory, abort } = request;
  if (command.sha256 !== undefined && !/^(?:[0-9a-f]{2})*$/i.test(command.sha256))
    throw new Error('the hash is no hex');
  const staging = join(
    directory,
    `.${request.name ?? 'download'}.${randomBytes(5).toString('hex')}.tmp`,
  );
  const file = await open(staging, 'wx', 0o600);
  try {
    const response = await requestOnce(request);
    const hash = createHash('sha256');
    for await (const chunk of response as AsyncIterable<Buffer>) {
      hash.update(chunk);
      await file.write(chunk);
    }
    if (!response.complete) throw new Error('unexpected end of the body');
    if (command.sha256 !== undefined && hash.digest('hex') !== command.sha256.toLowerCase()) {
      throw new Error('the hash is another one');
    }
    await file.sync();
    const path = join(directory, request.name ?? nameOf(response, command.url));
    await rename(staging, path);
    return path;
  } catch (error) {
    // Nothing cleans up after a process that was killed.
    if (!(abort.aborted && abort.reason === KILLED)) await rm(staging, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

/** The abort reason of a process that is killed, and so has no time to clean up. */
export const KILLED = new Error('killed');

async function requestOnce({
  command,
  userAgent,
  stallMs,
  abort,
}: PayloadRequest): Promise<IncomingMessage> {
  const headers = { 'user-agent': userAgent, 'accept-encoding': 'gzip', connection: 'close' };
  const outgoing = get(command.url, { headers, agent: false, signal: abort, timeout: stallMs });
  outgoing.once('timeout', () => outgoing.destroy(new Error('the server was silent')));
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  if (response.statusCode === 200) return response;
  response.destroy();
  throw new Error(`bad status ${response.statusCode}`);
}

/**
 * Returns the file name from the Content-Disposition header, or else from the last segment of the URL. Replaces unsafe
 * characters such as slashes, and rejects names such as `..`.
 */
function nameOf({ headers }: IncomingMessage, url: string): string {
  const [, quoted, bare] =
    /filename=(?:"([^"]*)"|([^;\s]*))/.exec(headers['content-disposition'] ?? '') ?? [];
  const found = quoted ?? bare ?? decodeURIComponent(basename(new URL(url).pathname));
  const name = found.normalize('NFC').replaceAll(/[/\\:*?"<>|\p{Cc}]/gu, '_');
  if (name === '' || name === '.' || name === '..' || Buffer.byteLength(name) > 255)
    throw new Error('the file has no name');
  return name;
}
