/**
 * Defines the catalog of an update server: releases with their files, and channels. `refit bundle` writes it, and `refit serve`
 * reads it.
 */
import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { messageOf, RefitError } from '../../util/errors.ts';
import { ownMember } from '../../util/own-member.ts';
import { compareVersions, parseVersion } from '../../util/version.ts';

/**
 * The file is replaced as a whole. A reader finds either the old catalog or the new catalog. All files that the catalog
 * names exist in both cases.
 */
export const CATALOG_FILE = 'catalog.json';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

export const versionSchema = z
  .string()
  .refine(
    (text) => (parseVersion(text)?.build ?? '') !== '' && text.startsWith('v'),
    'is not a version with its build, such as v1.36.3+k0s.0',
  );

const fileSchema = z.strictObject({
  /** The platform as `<os>-<architecture>`. */
  platform: z.string().regex(/^[a-z0-9]+-[a-z0-9]+$/),
  kind: z.enum(['k0s', 'airgap']),
  sha256,
  size: z.int().min(0),
});

export const entrySchema = z.strictObject({
  version: versionSchema,
  /** The percentage of clusters that get the release. By default all clusters get it. */
  percent: z.int().min(0).max(100).optional(),
  /** True if no cluster gets the release for now. */
  hold: z.boolean().optional(),
  /** The reason why the release was withdrawn. No cluster gets it any more, and running Plans for it stop. */
  withdrawn: z.string().min(1).optional(),
});

export const channelsSchema = z.record(
  z.string().regex(/^[a-z][a-z0-9-]*$/),
  z.array(entrySchema),
  {
    error: ({ code }) =>
      code === 'invalid_key' ? 'is not a channel: use lower-case letters, digits and -' : undefined,
  },
);
const catalogSchema = z.strictObject({
  releases: z.record(z.string(), z.array(fileSchema)),
  channels: channelsSchema,
});

export type CatalogFile = z.infer<typeof fileSchema>;
export type Catalog = z.infer<typeof catalogSchema>;

/** Returns the path of a file. The path has the hash of the content, so the file never changes. */
export function pathOfFile(directory: string, hash: string): string {
  return join(directory, 'files', hash);
}

/** Reads the catalog. Rejects with REFIT_FILE if it cannot be read or is invalid. */
export async function readCatalog(directory: string): Promise<Catalog> {
  const path = join(directory, CATALOG_FILE);
  try {
    return catalogSchema.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error) : messageOf(error);
    const hint = 'make it with `refit bundle`';
    throw new RefitError('REFIT_FILE', `cannot use ${path}: ${why}`, { cause: error, hint });
  }
}

/**
 * Returns a function that resolves with the catalog. The function reads the file again only after the file was
 * replaced.
 */
export function followCatalog(directory: string): () => Promise<Catalog> {
  let read: { readonly at: string; readonly catalog: Catalog } | undefined;
  return async () => {
    const { mtimeMs, ino } = await stat(join(directory, CATALOG_FILE));
    const at = `${mtimeMs} ${ino}`;
    if (read?.at !== at) read = { at, catalog: await readCatalog(directory) };
    return read.catalog;
  };
}

/** Returns the newest version that the channel has for a cluster. `minor`, such as `v1.37`, limits the choice. */
export function versionFor(
  catalog: Catalog,
  channel: string,
  clusterId: string,
  minor?: string,
): string | undefined {
  // The name comes from the request, so it may be the name of an inherited property.
  const entries = ownMember(catalog.channels, channel);
  const offered = (entries ?? []).flatMap((entry) => {
    const version = parseVersion(entry.version);
    const isOffered =
      entry.hold !== true && entry.withdrawn === undefined && isIncluded(clusterId, entry);
    const fits = minor === undefined || `v${version?.major}.${version?.minor}` === minor;
    return version && isOffered && fits ? [{ text: entry.version, version }] : [];
  });
  return offered.toSorted((a, b) => compareVersions(b.version, a.version))[0]?.text;
}

/**
 * Returns true if the cluster is in the percentage of the release. A cluster without an id gets the release only if all
 * clusters get it.
 */
function isIncluded(
  clusterId: string,
  { version, percent = 100 }: z.infer<typeof entrySchema>,
): boolean {
  if (percent === 100 || clusterId === '') return percent === 100;
  return (
    createHash('sha256').update(`${version} ${clusterId}`).digest().readUInt32BE() % 100 < percent
  );
}

export function withdrawnOf(catalog: Catalog, channel: string): Record<string, string> {
  const gone = (ownMember(catalog.channels, channel) ?? []).filter(
    ({ withdrawn }) => withdrawn !== undefined,
  );
  return Object.fromEntries(gone.map(({ version, withdrawn = '' }) => [version, withdrawn]));
}
