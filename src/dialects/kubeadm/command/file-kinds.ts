/** Judges the manifests of `refit kubeadm` for `refit validate`. */
import type { FileKind, Judgement } from '../../../cli/contract/file-kind.ts';
import { isRecord } from '../../../util/json.ts';
import { counted } from '../../../util/phrases.ts';
import { type Manifest, parseManifest } from '../plan/manifest.ts';

export const manifestFiles: readonly FileKind[] = [
  {
    form: 'document',
    isMeant: isManifest,
    judge: (text, path) => judgeManifest(parseManifest(text, path)),
  },
];

/** Returns true for a manifest of `refit kubeadm`, the only input without kind and apiVersion, and for one of KubeOne. */
function isManifest(document: unknown): boolean {
  if (!isRecord(document)) return false;
  const { kind, apiVersion } = document;
  return (
    kind === 'KubeOneCluster' || (apiVersion === undefined && Object.hasOwn(document, 'hosts'))
  );
}

function judgeManifest({ version, hosts }: Manifest): Judgement {
  const title = `${counted(hosts.length, 'host')} to upgrade to ${version}: the manifest is valid`;
  return { title, problems: [], warnings: [] };
}
