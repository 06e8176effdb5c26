/** Installs and removes both controllers as docs/guides/migrate-from-system-upgrade-controller.md describes. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { must } from '../../../tools/release/commands.ts';
import { REFIT_IMAGE } from '../kubeadm/images/refit.ts';
import { until } from '../wait.ts';
import { administer, get, originalOf, type Scene } from './scene.ts';

export const NAMESPACE = 'system-upgrade';
const CONTROLLER = 'system-upgrade-controller';
const DEPLOYMENT = `deployment/${CONTROLLER}`;
const CHART = join(import.meta.dirname, '../../../deploy/chart');
const RELEASE = ['refit', '--namespace', 'refit-system'];
const SECONDS = 300;

export interface Controller {
  readonly name: string;
  /** Resolves when the controller leads. */
  readonly install: (scene: Scene) => Promise<void>;
  /** Resolves when no pod of the controller is left. */
  readonly remove: (scene: Scene) => Promise<void>;
}

/** The variables of the original's manifest whose defaults differ. The guide says that Refit gets them, too. */
const OWN = {
  SYSTEM_UPGRADE_JOB_ACTIVE_DEADLINE_SECONDS: '900',
  SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT: '99',
};

export const ORIGINAL: Controller = {
  name: 'the original',
  install: async (scene) => {
    const { directory, version } = scene.options;
    const { manifests } = originalOf(scene);
    const folder = join(directory, 'original');
    await mkdir(folder, { recursive: true });
    const resources = await readdir(manifests);
    for (const file of resources) {
      const text = await readFile(join(manifests, file), 'utf8');
      // No image can be pulled here.
      const own = text.replaceAll('PULL_POLICY: "Always"', 'PULL_POLICY: "IfNotPresent"');
      await writeFile(join(folder, file), own);
    }
    // The original's own kustomization sets the same namespace, and the image of an earlier version.
    const images = [{ name: `rancher/${CONTROLLER}`, newTag: version }];
    const kustomization = { resources, namespace: NAMESPACE, images };
    await writeFile(join(folder, 'kustomization.yaml'), stringify(kustomization));
    await administer(scene, 'apply', '-k', folder);
    await leads(scene);
  },
  remove: async (scene) => {
    await administer(scene, '-n', NAMESPACE, 'delete', DEPLOYMENT);
    await gone(scene);
  },
};

export const REFIT: Controller = {
  name: 'Refit',
  install: async (scene) => await installRefit(scene, OWN),
  remove: async (scene) => {
    await helm(scene, ['uninstall', ...RELEASE, '--wait']);
    await gone(scene);
  },
};

/** Installs Refit with these variables. */
export async function installRefit(
  scene: Scene,
  variables: Readonly<Record<string, string>>,
): Promise<void> {
  const [repository = '', tag = ''] = REFIT_IMAGE.split(':');
  const values = {
    'k0s.enabled': 'false',
    'cattle.enabled': 'true',
    'image.repository': repository,
    'image.tag': tag,
  };
  await helm(scene, [
    'install',
    ...RELEASE,
    CHART,
    '--create-namespace',
    ...Object.entries(values).flatMap(([name, value]) => ['--set', `${name}=${value}`]),
    ...Object.entries(variables).flatMap(([name, value]) => [
      '--set-string',
      `cattle.env.${name}=${value}`,
    ]),
  ]);
  await leads(scene);
}

/** Helm keeps its files in the folder of the part. */
async function helm({ options, cluster }: Scene, args: readonly string[]): Promise<void> {
  const names = ['HELM_CACHE_HOME', 'HELM_CONFIG_HOME', 'HELM_DATA_HOME', 'KUBECACHEDIR'];
  const home = names.map((name) => [name, join(options.directory, name.toLowerCase())] as const);
  await must(options.helm, [...args, '--kubeconfig', cluster.kubeconfig], {
    environment: Object.fromEntries(home),
  });
}

interface Lease {
  readonly spec: {
    readonly holderIdentity?: string;
    readonly acquireTime?: string;
    readonly renewTime?: string;
  };
}

interface Pods {
  readonly items: readonly { readonly metadata: { readonly name: string } }[];
}

const podsOf = async (scene: Scene): Promise<string[]> => {
  const label = `upgrade.cattle.io/controller=${CONTROLLER},!upgrade.cattle.io/plan`;
  const { items } = await get<Pods>(scene, 'pods', '-n', NAMESPACE, '-l', label);
  return items.map(({ metadata }) => metadata.name);
};

/** How long a controller must have led before the proof looks at what it did. */
const LED_MS = 15_000;

/** Waits until one of the controller's pods has held the Lease for some time. */
async function leads(scene: Scene): Promise<void> {
  const ready = `--timeout=${SECONDS}s`;
  await administer(scene, '-n', NAMESPACE, 'rollout', 'status', DEPLOYMENT, ready);
  await until('the controller to lead', SECONDS, async () => {
    const { items } = await get<{ items: Lease[] }>(scene, 'leases', '-n', NAMESPACE);
    const pods = await podsOf(scene);
    return items.some(({ spec: { holderIdentity = '', acquireTime = '', renewTime = '' } }) => {
      const isOwn = pods.some((pod) => holderIdentity.startsWith(pod));
      return isOwn && Date.parse(renewTime) - Date.parse(acquireTime) >= LED_MS;
    });
  });
}

async function gone(scene: Scene): Promise<void> {
  await until('the controller to end', SECONDS, async () => (await podsOf(scene)).length === 0);
}
