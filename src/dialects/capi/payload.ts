/** Builds the download URL of a version from a template, and reads its published checksum. */
import type { Payload } from '../../engine/model/recorded.ts';
import { RefitError } from '../../util/errors.ts';

export interface PayloadSource {
  /** May contain `{version}`, `{os}` and `{arch}`. */
  readonly url: string;
  /** Template for the output of sha256sum; without it the payload is not verified. */
  readonly checksumUrl?: string | undefined;
}

export type ReadText = (url: string, abort: AbortSignal) => Promise<string>;

const MAX_CHECKSUM_BYTES = 4096;

/** `platform` is `<os>-<architecture>`. Rejects if there is a `checksumUrl` without a readable checksum. */
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
  if (sha256 === undefined)
    throw new RefitError('REFIT_FILE', `${from} does not start with a SHA-256; publish the output of sha256sum there`);
  return { url: fill(url), sha256: sha256.toLowerCase() };
}

export async function fetchText(url: string, abort: AbortSignal): Promise<string> {
  const response = await fetch(url, { signal: abort });
  if (!response.ok) throw new RefitError('REFIT_FILE', `${url} returned HTTP ${response.status}`);
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    parts.push(part);
    length += part.length;
    if (length >= MAX_CHECKSUM_BYTES) break;
  }
  return Buffer.concat(parts).subarray(0, MAX_CHECKSUM_BYTES).toString('utf8');
}
