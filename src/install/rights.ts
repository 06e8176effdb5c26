/** Returns the rights beside those of the components, which `refit install rights` prints. Each is a file of deploy/. */
import { deployFile } from './deploy-files.ts';

/** Returns the manifests of rights with one of these names, with comments that say what they allow. */
export function rightsOf(name: string): string {
  return deployFile(name === 'k0s' ? 'rbac.yaml' : `rbac-${name}.yaml`);
}
