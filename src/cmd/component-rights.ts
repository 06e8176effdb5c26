/** Reads from the manifests of the package which rights each component of Refit needs. */
import type { InstallComponent } from '../cli/contract/install-component.ts';
import { manifestsOf, objectsIn } from '../install/manifests.ts';
import type { KubeObject } from '../kube/resources.ts';
import type { ComponentRights } from '../ready/rights.ts';

interface Deployment extends KubeObject {
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: { readonly serviceAccountName: string };
    };
  };
}

/** Returns the rights of every component that a dialect has in the cluster. */
export function componentRights(
  modules: readonly { readonly install: InstallComponent | undefined }[],
): ComponentRights[] {
  return modules.flatMap(({ install }) => {
    if (install === undefined) return [];
    const manifests = objectsIn(manifestsOf(install.folders, {}));
    const deployment = manifests.find(({ kind }) => kind === 'Deployment') as Deployment;
    const { metadata, spec } = deployment.spec.template;
    return [
      {
        component: metadata.labels['app.kubernetes.io/component'] ?? '',
        account: spec.serviceAccountName,
        namespace: deployment.metadata.namespace ?? '',
        command: `refit install ${install.name}`,
        manifests,
      },
    ];
  });
}
