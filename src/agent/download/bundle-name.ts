/**
 * Chooses the file name of an airgap bundle: the name that its server suggests, made safe as the original agent does.
 */
import type { Answer } from '../../http/http-get.ts';
import { ifPossible } from '../../util/errors.ts';

/**
 * The name of a partial bundle. No bundle may have this name, because it would be removed with the partial downloads.
 */
export const PARTIAL_BUNDLE = '.refit-airgap.part';

/**
 * Returns the name from the header Content-Disposition. If the header has no usable name, it returns the name from the
 * URL of the answer. Throws if the URL has no usable name either.
 */
export function bundleNameFor({ response, url }: Answer): string {
  const dispositions = response.headersDistinct['content-disposition'] ?? [];
  const suggested =
    dispositions.length === 1 ? safeName(suggestionIn(dispositions[0] ?? '')) : undefined;
  const name = suggested ?? nameIn(url);
  if (name === PARTIAL_BUNDLE)
    throw new Error(
      `the file name of the bundle on ${url.host} is ${name}, which the agent uses for partial downloads: rename the bundle there`,
    );
  if (name !== undefined) return name;
  throw new Error(
    `${url.host} gives no usable file name for the bundle, neither in the URL nor in Content-Disposition`,
  );
}

/**
 * Returns true if the text is a safe name for a bundle. Names in the agent's own files are checked, too, because those
 * files may have been changed.
 */
export function isBundleName(name: unknown): name is string {
  return typeof name === 'string' && name !== PARTIAL_BUNDLE && safeName(name) === name;
}

/** Returns the last segment of the URL's path; undefined if it is not a usable name. */
export function bundleNameIn(url: URL): string | undefined {
  const name = nameIn(url);
  return name === PARTIAL_BUNDLE ? undefined : name;
}

function nameIn({ pathname }: URL): string | undefined {
  const segments = ifPossible(() => decodeURIComponent(pathname))?.split('/') ?? [];
  return safeName(segments.findLast((segment) => segment !== ''));
}

/**
 * Matches a parameter as in RFC 6266, whose value is a token or a quoted text. `filename*` takes precedence, and its
 * characters are percent-encoded.
 */
const PARAMETER = /;\s*([^\s=;]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))\s*/gy;

function suggestionIn(disposition: string): string | undefined {
  const parameters = new Map<string, string>();
  let end = /^[^\s;]*\s*/.exec(disposition)?.[0].length ?? 0;
  PARAMETER.lastIndex = end;
  for (const match of disposition.matchAll(PARAMETER)) {
    const [whole, name = '', quoted, token = ''] = match;
    parameters.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? token);
    end = match.index + whole.length;
  }
  // A header that cannot be parsed to its end is ignored.
  if (!/^[;\s]*$/.test(disposition.slice(end))) return undefined;
  const [, encoded] =
    /^(?:utf-8|us-ascii)'[^']*'(.*)$/i.exec(parameters.get('filename*') ?? '') ?? [];
  return (encoded && ifPossible(() => decodeURIComponent(encoded))) ?? parameters.get('filename');
}

const MAX_BYTES = 255;
/** These are names of devices in Windows, so such a file could not be copied to Windows. */
const RESERVED = /^(?:con|prn|aux|nul|(?:com|lpt)[0-9¹²³])(?:\.|$)/i;
/**
 * These are separators, characters with a meaning in shells or in Windows, invisible characters, blanks at the ends,
 * and a dot at the end.
 */
const PROBLEMATIC = /[\\/<>|:"?*\p{Cc}\p{Cf}\p{Co}\p{Cs}]|^\s|[.\s]$/gu;

function safeName(suggested: string | undefined): string | undefined {
  const name = suggested?.normalize('NFC') ?? '';
  const isUsable =
    name !== '' && name !== '.' && name !== '..' && Buffer.byteLength(name) <= MAX_BYTES;
  return isUsable && !RESERVED.test(name) ? name.replaceAll(PROBLEMATIC, '_') : undefined;
}
