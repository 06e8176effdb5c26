/** The file name of an airgap bundle: what its server suggests, made safe as the original does. */
import type { Answer } from '../../http/http-get.ts';
import { ifPossible } from '../../util/errors.ts';

/** Name of a partial bundle: a bundle of this name would be removed with what is left of a download. */
export const PARTIAL_BUNDLE = '.refit-airgap.part';

/** Throws when neither the answer's Content-Disposition nor its URL has a usable name. */
export function bundleNameFor({ response, url }: Answer): string {
  const dispositions = response.headersDistinct['content-disposition'] ?? [];
  const suggested =
    dispositions.length === 1 ? safeName(suggestionIn(dispositions[0] ?? '')) : undefined;
  const name = suggested ?? nameIn(url);
  if (name === PARTIAL_BUNDLE)
    throw new Error(
      `${url.host} names the bundle ${name}, as the agent names its partial downloads: rename it there`,
    );
  if (name !== undefined) return name;
  throw new Error(
    `neither the URL's path nor a Content-Disposition of ${url.host} names the bundle`,
  );
}

/** Name of a bundle in a list or record of ours; those files may have been changed. */
export function isBundleName(name: unknown): name is string {
  return typeof name === 'string' && name !== PARTIAL_BUNDLE && safeName(name) === name;
}

/** The last segment of the path; undefined when it is no usable name. */
export function bundleNameIn(url: URL): string | undefined {
  const name = nameIn(url);
  return name === PARTIAL_BUNDLE ? undefined : name;
}

function nameIn({ pathname }: URL): string | undefined {
  const segments = ifPossible(() => decodeURIComponent(pathname))?.split('/') ?? [];
  return safeName(segments.findLast((segment) => segment !== ''));
}

/** RFC 6266: parameters are tokens or quoted; `filename*` wins, and has its characters percent-encoded. */
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
  // A header that does not parse to its end is not trusted at all.
  if (!/^[;\s]*$/.test(disposition.slice(end))) return undefined;
  const [, encoded] =
    /^(?:utf-8|us-ascii)'[^']*'(.*)$/i.exec(parameters.get('filename*') ?? '') ?? [];
  return (encoded && ifPossible(() => decodeURIComponent(encoded))) ?? parameters.get('filename');
}

const MAX_BYTES = 255;
/** Devices of Windows: such a file could not be copied there. */
const RESERVED = /^(?:con|prn|aux|nul|(?:com|lpt)[0-9¹²³])(?:\.|$)/i;
/** Separators, what shells or Windows take for something else, invisible characters, and blanks or a dot at the ends. */
const PROBLEMATIC = /[\\/<>|:"?*\p{Cc}\p{Cf}\p{Co}\p{Cs}]|^\s|[.\s]$/gu;

function safeName(suggested: string | undefined): string | undefined {
  const name = suggested?.normalize('NFC') ?? '';
  const isUsable =
    name !== '' && name !== '.' && name !== '..' && Buffer.byteLength(name) <= MAX_BYTES;
  return isUsable && !RESERVED.test(name) ? name.replaceAll(PROBLEMATIC, '_') : undefined;
}
