/** Owns where the binary of a version comes from: addresses made from templates, and the checksum that is published beside it. */
import type { Payload } from '../../engine/model/recorded.ts';
import { RefitError } from '../../util/errors.ts';

export interface PayloadSource {
  /** With `{version}`, `{os}` and `{arch}` in it. */
  readonly url: string;
  /** The same for a file that begins with the SHA-256 of the payload, as sha256sum writes it; nothing is checked without. */
  readonly checksumUrl?: string | undefined;
}

/** Reads a small text; rejects where it cannot. */
export type ReadText = (url: string, abort: AbortSignal) => Promise<string>;

/** A checksum file is a line; what is longer than this is something else. */
const MAX_CHECKSUM_BYTES = 4096;

/** `platform` is `<os>-<architecture>`. Rejects where there is to be a checksum and none can be read. */
export async function findPayload(
  { url, checksumUrl }: PayloadSource,
  { version, platform }: { readonly version: string; readonly platform: string },
  readText: ReadText,
  abort: AbortSignal,
): Promise<Payload> {
  const [os = '', arch = ''] = platform.split('-');
  const fill = (template: string): string =>
    Object.entries({ version: encodeURIComponent(version), os, arch }).reduce(
      (text, [name, value]) => text.replaceAll(`{${name}}`, value),
      template,
    );
  if (checksumUrl === undefined) return { url: fill(url) };
  const from = fill(checksumUrl);
  const [, sha256] = /^\s*([0-9a-fA-F]{64})(?![0-9a-zA-Z])/.exec(await readText(from, abort)) ?? [];
  if (sha256 === undefined) throw new RefitError('REFIT_FILE', `${from} does not begin with a SHA-256`);
  return { url: fill(url), sha256: sha256.toLowerCase() };
}

export async function fetchText(url: string, abort: AbortSignal): Promise<string> {
  const response = await fetch(url, { signal: abort });
  if (!response.ok) throw new RefitError('REFIT_FILE', `${url} answers ${response.status}`);
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    parts.push(part);
    length += part.length;
    if (length >= MAX_CHECKSUM_BYTES) break;
  }
  return Buffer.concat(parts).subarray(0, MAX_CHECKSUM_BYTES).toString('utf8');
}
