/**
 * Returns the manifests of the permissions that `refit install rights` prints. They are not part of a component. Each
 * manifest is a file of deploy/.
 */
import { deployFile } from './deploy-files.ts';

/** Returns the manifests of the permissions with this name, with comments that explain what they allow. */
export function rightsOf(name: string): string {
  return deployFile(name === 'k0s' ? 'rbac.yaml' : `rbac-${name}.yaml`);
}
