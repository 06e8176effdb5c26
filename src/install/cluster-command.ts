/** Runs `refit install` and `refit uninstall` for the components in the cluster. */
import { type ClusterFlags, loadChosenCluster } from '../kube/config/kubeconfig.ts';
import { createClient } from '../kube/transport/http-client.ts';
import { applyObjects, type ObjectsRun, removeObjects } from './cluster-objects.ts';
import { type ManifestFlags, manifestsOf, objectsIn } from './manifests.ts';

type InstallFlags = ClusterFlags &
  ManifestFlags &
  Pick<ObjectsRun, 'dryRun'> & { readonly apply?: boolean };
type UninstallFlags = ClusterFlags & { readonly deletePlans?: boolean };

/** What runs in the cluster. */
export interface InstalledComponent {
  /** The folders of deploy/chart/manifests that the component consists of, in the order of installation. */
  readonly folders: readonly string[];
}

export type Cli = Pick<ObjectsRun, 'abort' | 'write'>;

/** Prints the manifests of the component, or applies them if `--apply` is set. With `--dry-run` it says what applying would do. */
export async function installComponent(
  { folders }: InstalledComponent,
  flags: InstallFlags,
  cli: Cli,
): Promise<void> {
  const text = manifestsOf(folders, flags);
  const { apply = false, dryRun } = flags;
  if (apply || dryRun !== undefined)
    await inCluster(
      flags,
      cli,
      async (run) => await applyObjects(objectsIn(text), { ...run, dryRun }),
    );
  else cli.write(text);
}

/** Removes the objects of the component, except those that another component needs. `all` are all components. */
export async function uninstallComponent(
  component: InstalledComponent,
  all: readonly InstalledComponent[],
  flags: UninstallFlags,
  cli: Cli,
): Promise<void> {
  const objects = objectsIn(manifestsOf(component.folders, {}));
  const others = all
    .filter((each) => each !== component)
    .map(({ folders }) => objectsIn(manifestsOf(folders, {})));
  const withPlans = flags.deletePlans === true;
  await inCluster(
    flags,
    cli,
    async (run) => await removeObjects(objects, run, { others, withPlans }),
  );
}

/** Calls `work` with a client, and closes the client afterwards. */
export async function inCluster<T>(
  flags: ClusterFlags,
  cli: Cli,
  work: (run: ObjectsRun) => Promise<T>,
): Promise<T> {
  const config = await loadChosenCluster(flags);
  using client = createClient(config, { userAgent: 'refit-install' });
  return await work({ ...cli, client });
}
