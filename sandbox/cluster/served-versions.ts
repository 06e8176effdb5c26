/** Serves stand-in binaries of k0s, one for each version, each with a file of its checksum. */
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type DownloadServer, startDownloadServer } from '../hosts/download-server.ts';
import { type Broken, buildStandIn } from '../hosts/stand-in.ts';

export interface ServedVersions {
  /** The binaries are built in its folder `payloads`. */
  readonly directory: string;
  /** Versions that the download server has. */
  readonly offers: readonly string[];
  /** The minimum size of these files, in bytes. */
  readonly payloadBytes?: number;
  /** Additional files of the download server: from the path of a URL to a file. */
  readonly files?: Readonly<Record<string, string>>;
  /** Nodes that get damaged bytes. */
  readonly breakFor?: readonly string[];
  /** False for a node of `breakFor` once somebody has repaired its download. */
  readonly isStillBroken?: (node: string) => boolean;
  /** Versions with a complete file, but a faulty build. */
  readonly badBuilds?: Readonly<Record<string, Broken>>;
}

/** Returns the path of a version on the download server. */
export function payloadPath(version: string): string {
  return `/${version}/k0s`;
}

/** Starts a server with each version and its checksum, in the form that `sha256sum` writes. */
export async function serveVersions({
  directory,
  offers,
  files: more,
  breakFor = [],
  isStillBroken,
  badBuilds = {},
  payloadBytes,
}: ServedVersions): Promise<DownloadServer> {
  const files = await Promise.all(
    offers.map(async (version) => {
      const path = join(directory, 'payloads', version);
      await buildStandIn({
        version,
        path,
        ...(badBuilds[version] !== undefined && { broken: badBuilds[version] }),
        ...(payloadBytes !== undefined && { bytes: payloadBytes }),
      });
      const sha256 = createHash('sha256')
        .update(await readFile(path))
        .digest('hex');
      await writeFile(`${path}.sha256`, `${sha256}  k0s\n`);
      const url = payloadPath(version);
      return [[url, path] as const, [`${url}.sha256`, `${path}.sha256`] as const];
    }),
  );
  return await startDownloadServer({
    files: { ...Object.fromEntries(files.flat()), ...more },
    breakFor,
    isStillBroken,
  });
}
