/** Reads the file that says what an update server offers: releases with where their files come from, and channels. */
import { z } from 'zod';
import { readBounded } from '../../util/bounded-file.ts';
import { messageOf, RefitError } from '../../util/errors.ts';
import { parseYaml } from '../../util/yaml.ts';
import { channelsSchema, versionSchema } from '../server/catalog.ts';

const sha256 = z.string().regex(/^[0-9a-fA-F]{64}$/, 'is no SHA-256: use 64 hexadecimal digits');

const sourceSchema = z.strictObject({
  platform: z.string().regex(/^[a-z0-9]+-[a-z0-9]+$/, 'is no platform: use for example linux-amd64'),
  k0s: z.string().optional(),
  k0sSha256: sha256.optional(),
  airgapBundle: z.string().optional(),
  airgapSha256: sha256.optional(),
});

const bundleSchema = z.strictObject({
  releases: z.array(z.strictObject({ version: versionSchema, files: z.array(sourceSchema) })),
  channels: channelsSchema,
});

export interface WantedFile {
  readonly version: string;
  readonly platform: string;
  readonly kind: 'k0s' | 'airgap';
  /** URL, or path relative to the bundle file. */
  readonly source: string;
  readonly sha256: string | undefined;
}

export interface BundleFile {
  readonly versions: readonly string[];
  readonly files: readonly WantedFile[];
  readonly channels: z.infer<typeof channelsSchema>;
}

/** Rejects with REFIT_FILE: the field, what was found, and what would be right. */
export async function readBundleFile(path: string): Promise<BundleFile> {
  const fail = (why: string): never => {
    throw new RefitError('REFIT_FILE', `${path}: ${why}`, { hint: 'docs/guides/updates.md has an example' });
  };
  const text = await readBounded(path).catch((error: unknown) => fail(`cannot be read: ${messageOf(error)}`));
  const [document] = parseYaml(text, fail);
  const { data, error } = bundleSchema.safeParse(document);
  if (!data) return fail(z.prettifyError(error).replaceAll(/\s+/g, ' '));
  const versions = data.releases.map(({ version }) => version);
  const files = data.releases.flatMap(({ version, files: listed }) =>
    listed.flatMap(({ platform, k0s, k0sSha256, airgapBundle, airgapSha256 }): WantedFile[] => [
      ...(k0s ? [{ version, platform, kind: 'k0s' as const, source: k0s, sha256: k0sSha256?.toLowerCase() }] : []),
      ...(airgapBundle
        ? [{ version, platform, kind: 'airgap' as const, source: airgapBundle, sha256: airgapSha256?.toLowerCase() }]
        : []),
    ]),
  );
  const unproven = files.find(({ source, sha256: known }) => /^https?:/i.test(source) && known === undefined);
  if (unproven)
    fail(
      `release ${unproven.version}: ${unproven.platform} comes from a URL without a SHA-256; add ${unproven.kind}Sha256`,
    );
  for (const [channel, entries] of Object.entries(data.channels)) {
    for (const { version } of entries)
      if (!versions.includes(version)) fail(`channels.${channel}: ${version} is not among the releases; add it there`);
    // Without an index no cluster would hear what was withdrawn.
    if (!entries.some(({ percent = 100, hold, withdrawn }) => percent === 100 && !hold && withdrawn === undefined))
      fail(`channels.${channel}: no release is for every cluster; keep one without percent, hold and withdrawn`);
  }
  return { versions, files, channels: data.channels };
}
