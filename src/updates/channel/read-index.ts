/**
 * Reads the answer of an update server. The server is not trusted, so the reader already checks every rule that a Plan
 * must obey.
 */
import { z } from 'zod';
import { isRecord } from '../../util/json.ts';
import { printable } from '../../util/printable.ts';
import { parseVersion, withV } from '../../util/version.ts';
import { parseForeignYaml } from '../../util/yaml.ts';

/** The downloads by platform, `<os>-<architecture>`. */
export type Downloads = Readonly<
  Record<string, { readonly url: string; readonly sha256?: string }>
>;

export interface Release {
  /** The version starts with `v`, as in the reports of nodes. */
  readonly version: string;
  readonly k0s: Downloads;
  readonly airgap: Downloads;
  /** When the release was published, in milliseconds since the Unix epoch; undefined if the index does not say it. */
  readonly publishedMs?: number;
  /** Versions that must not run any more, each with the reason. */
  readonly withdrawn: Readonly<Record<string, string>>;
}

const text = z.string().nullish();

/**
 * Keys are in lower case, because the autopilot of k0s ignores case. As in k0s, optional fields may be empty, and
 * unknown fields are ignored.
 */
const entrySchema = z.object({
  os: z.string(),
  arch: z.string(),
  k0s: text,
  url: text,
  k0ssha256: text,
  airgapbundle: text,
  airgapsha256: text,
});
const texts = z.record(z.string(), z.string()).nullish();
const indexSchema = z.object({
  version: z.string(),
  downloadurls: z.union([z.array(entrySchema), z.object({ k0s: texts, airgap: texts })]),
  withdrawn: texts,
  published: z.union([z.string(), z.date()]).nullish().catch(undefined),
});

/** Parses an index. Throws an error with one sentence that says what was found in the index and what would be right. */
export function readIndex(body: string): Release {
  if (/^\s*</.test(body))
    throw new Error('the update server sent HTML instead of an index; is it a login page?');
  const document = parseForeignYaml(body, (why) => {
    throw new Error(`the index cannot be read as YAML: ${why}`);
  });
  if (!isRecord(document))
    throw new Error('the index is not an object; it needs version and downloadURLs');
  const { data, error } = indexSchema.safeParse(withLowerKeys(document));
  if (error) {
    const [issue] = error.issues;
    throw new Error(
      `the index has no valid ${issue?.path.map(String).join('.')}; it needs version and downloadURLs`,
    );
  }
  const { downloadurls: listed, withdrawn } = data;
  const downloads = Array.isArray(listed)
    ? { k0s: listedFiles(listed, 'k0s'), airgap: listedFiles(listed, 'airgap') }
    : { k0s: mappedFiles(listed.k0s ?? {}), airgap: mappedFiles(listed.airgap ?? {}) };
  const briefly = (why: string): string => printable(why.slice(0, 200));
  const reasons = Object.entries(withdrawn ?? {}).map(
    ([version, why]) => [versionOf(version), briefly(why)] as const,
  );
  const publishedMs = momentIn(data.published);
  return {
    version: versionOf(data.version),
    ...downloads,
    ...(publishedMs === undefined ? {} : { publishedMs }),
    withdrawn: Object.fromEntries(reasons),
  };
}

/**
 * Returns the time in milliseconds; undefined if the index has no time that can be parsed. Without a time, the age of
 * the release counts from the moment at which Refit saw the release first.
 */
function momentIn(written: string | Date | null | undefined): number | undefined {
  const ms = written instanceof Date ? written.getTime() : Date.parse(written ?? '');
  return Number.isNaN(ms) ? undefined : ms;
}

function listedFiles(
  entries: readonly z.infer<typeof entrySchema>[],
  kind: 'k0s' | 'airgap',
): Downloads {
  return Object.fromEntries(
    entries.flatMap(({ os, arch, k0s, url: older, k0ssha256, airgapbundle, airgapsha256 }) => {
      const [url, sha256] =
        kind === 'k0s' ? [k0s ?? older, k0ssha256] : [airgapbundle, airgapsha256];
      return url ? [[`${os}-${arch}`, checked(url, sha256)]] : [];
    }),
  );
}

function mappedFiles(files: Readonly<Record<string, string>>): Downloads {
  return Object.fromEntries(
    Object.entries(files).map(([name, url]) => [platformOf(name), checked(url)]),
  );
}

/**
 * Returns the platform for a name in a map. The channel `edge_release` names files instead: `linux-airgap-bundle-amd64`, and
 * in its older form `k0s-amd64` and `k0s-airgap-bundle-amd64`. All files of that channel are for Linux.
 */
function platformOf(name: string): string {
  const file = /^(?:linux|k0s)(?:-airgap-bundle)?-([a-z0-9]+)$/.exec(name);
  return file ? `linux-${file[1]}` : name;
}

function checked(url: string, sha256?: string | null): Downloads[string] {
  if (!/^https?:\/\/[^\s/]\S*$/i.test(url) || !URL.canParse(url))
    throw new Error('the index has a download that is not a URL with http or https');
  if (!sha256) return { url };
  if (!/^[0-9a-f]{64}$/i.test(sha256))
    throw new Error('the index has a sha256 that is not 64 hexadecimal digits');
  return { url, sha256: sha256.toLowerCase() };
}

/** Adds the `v` that some indexes lack. Plans without the `v` fail, even with the autopilot of k0s. */
function versionOf(found: string): string {
  const version = found.trim();
  if (!parseVersion(version) || version.length > 64)
    throw new Error(
      `the index has version "${printable(found.slice(0, 64))}"; expected one such as v1.36.3+k0s.0`,
    );
  return withV(version);
}

function withLowerKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withLowerKeys);
  if (!isRecord(value)) return value;
  // This also changes the keys of maps, which are versions and platforms. The change does no harm, because valid
  // versions and platforms are in lower case.
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key.toLowerCase(), withLowerKeys(inner)]),
  );
}
