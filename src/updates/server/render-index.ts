/** Writes the index of a release in both formats of k0s, as JSON, which is YAML too. */
import { type Catalog, type CatalogFile, withdrawnOf } from './catalog.ts';

/** `base` is the address of this server, without a slash at its end. */
export function listedIndex(catalog: Catalog, channel: string, version: string, base: string): string {
  const files = catalog.releases[version] ?? [];
  const platforms = [...new Set(files.map(({ platform }) => platform))];
  const downloadURLs = platforms.map((each) => {
    const [os, arch] = each.split('-');
    const [k0s, airgap] = (['k0s', 'airgap'] as const).map((kind) =>
      files.find((file) => file.platform === each && file.kind === kind),
    );
    return {
      os,
      arch,
      ...(k0s && { k0s: urlOf(base, version, k0s), k0sSha256: k0s.sha256 }),
      ...(airgap && { airgapBundle: urlOf(base, version, airgap), airgapSha256: airgap.sha256 }),
    };
  });
  return `${JSON.stringify({ channel, version, downloadURLs, withdrawn: withdrawnOf(catalog, channel) })}\n`;
}

/** Has no hashes: serve it over TLS. */
export function mappedIndex(catalog: Catalog, channel: string, version: string, base: string): string {
  const files = catalog.releases[version] ?? [];
  const of = (kind: CatalogFile['kind']): Record<string, string> =>
    Object.fromEntries(
      files.flatMap((file) => (file.kind === kind ? [[file.platform, urlOf(base, version, file)]] : [])),
    );
  const downloadURLs = { k0s: of('k0s'), airgap: of('airgap') };
  return `${JSON.stringify({ version, downloadURLs, withdrawn: withdrawnOf(catalog, channel) })}\n`;
}

/** Nodes name image bundles by the last segment. */
function urlOf(base: string, version: string, { kind, platform, sha256 }: CatalogFile): string {
  const name = kind === 'k0s' ? `k0s-${version}-${platform}` : `k0s-airgap-bundle-${version}-${platform}`;
  return `${base}/files/${sha256}/${encodeURIComponent(name)}`;
}
