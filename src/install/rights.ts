/** Lists the rights beside those of the components, which `refit install rights` prints. Each is a file of deploy/. */
import { deployFile } from './deploy-files.ts';

export const RIGHTS = [
  'approver',
  'capi-clusters',
  'cattle-drain',
  'controlnode',
  'controlnode-workloads',
  'coordinate',
  'coordinate-kured',
  'crds',
  'health',
  'hooks',
  'kubeadm',
  'kubeadm-approval',
  'node-conditions',
  'notify',
  'silences',
  'updates',
  'volumes',
] as const;

/** Returns the manifests of rights with one of these names, with comments that say what they allow. */
export function rightsOf(name: string): string {
  return deployFile(`rbac-${name}.yaml`);
}
