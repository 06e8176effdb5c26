/** Writes for each dialect one file that `kubectl apply -f` installs: definitions, rights and the controller. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const KUSTOMIZATION = 'kustomization.yaml';

export interface InstallManifest {
  /** Name of the file. */
  readonly name: string;
  readonly text: string;
}

export interface ManifestOptions {
  readonly version: string;
  /** The image of the controllers, without a tag. By default the manifests keep `refit`, which has no registry. */
  readonly repository?: string | undefined;
}

interface Description {
  /** The folder in deploy/kustomize. */
  readonly dialect: string;
  readonly plans: string;
  /** The steps that the reader must do in addition to applying the file. */
  readonly next: string;
}

const IMAGE_FIRST =
  'The nodes must be able to pull the image below, or have it already. To use your own registry, replace it.';

const DESCRIPTIONS: readonly Description[] = [
  { dialect: 'k0s', plans: 'Plans of k0s Autopilot', next: IMAGE_FIRST },
  {
    dialect: 'cattle',
    plans: "Plans of Rancher's system-upgrade-controller",
    next: `${IMAGE_FIRST}\nFirst delete the Deployment of the original system-upgrade-controller.`,
  },
  {
    dialect: 'capi',
    plans: 'Machines of Cluster API',
    next: `${IMAGE_FIRST}\nReplace both addresses at mirror.example.com, and create the Secrets that the Deployment mounts.`,
  },
  {
    dialect: 'kubeadm',
    plans: 'clusters of kubeadm',
    next: 'These are only rights: `refit kubeadm` runs on your machine.',
  },
];

/**
 * Returns a file for each dialect. It has the same objects as the base of kustomize, with the comments that explain
 * each right. `deploy` is the path of the folder deploy/.
 */
export function installManifests(
  deploy: string,
  { version, repository }: ManifestOptions,
): InstallManifest[] {
  return DESCRIPTIONS.map(({ dialect, plans, next }) => {
    const header = `Refit ${version} for ${plans}.\n${next}`.replaceAll(/^/gm, '# ');
    const objects = textsOf(join(deploy, 'kustomize', dialect)).join('\n---\n');
    const text = `${header}\n---\n${objects}\n`;
    return {
      name: `install-${dialect}.yaml`,
      text: repository === undefined ? text : withRepository(text, repository),
    };
  });
}

/** Returns the text of each file that the kustomization in `folder` names, in its order. */
function textsOf(folder: string): string[] {
  const text = readFileSync(join(folder, KUSTOMIZATION), 'utf8');
  const { resources } = parse(text) as { resources: readonly string[] };
  return resources.flatMap((resource) => {
    const path = join(folder, resource);
    if (!resource.endsWith('.yaml')) return textsOf(path);
    return [
      readFileSync(path, 'utf8')
        .replace(/^# Made from .*\n/, '')
        .trimEnd(),
    ];
  });
}

function withRepository(text: string, repository: string): string {
  return text.replaceAll(/^( +(?:- )?image: )refit:/gm, `$1${repository}:`);
}
