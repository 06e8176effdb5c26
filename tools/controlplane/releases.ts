/** Lists the releases of Kubernetes on which the tests can run, and reads which of them is chosen. */
import { RefitError } from '../../src/util/errors.ts';

export interface Release {
  readonly kubernetes: string;
  /** The etcd that the kubeadm of this release installs, or a later patch of it. */
  readonly etcd: string;
  /** The folders of the dependency manifests below `tools/`. */
  readonly modules: Readonly<Record<'kubernetes' | 'etcd' | 'etcdutl', string>>;
}

/** The minor version on which `npm test` and `npm run test:real` run, unless another one is chosen. */
const USUAL = 'v1.36';

/** The environment variable that chooses another minor version, such as `v1.37`. */
export const CHOICE = 'REFIT_KUBERNETES';

const beside = (minor: string, kubernetes: string, etcd: string): Release => ({
  kubernetes,
  etcd,
  modules: {
    kubernetes: `minors/${minor}/kube`,
    etcd: `minors/${minor}/etcd`,
    etcdutl: `minors/${minor}/etcd`,
  },
});

/** The releases by their minor versions. `SupportedEtcdVersion` of each kubeadm says which etcd it installs. */
export const RELEASES: ReadonlyMap<string, Release> = new Map([
  ['v1.30', beside('v1.30', 'v1.30.14', 'v3.5.15')],
  [
    USUAL,
    {
      kubernetes: 'v1.36.3',
      etcd: 'v3.6.14',
      modules: { kubernetes: 'kube', etcd: 'etcd', etcdutl: 'etcdutl' },
    },
  ],
  ['v1.37', beside('v1.37', 'v1.37.2', 'v3.7.0')],
]);

/**
 * Returns the release of a minor version. `field` is where the minor version was found. Throws REFIT_USAGE if there is
 * no manifest for it.
 */
export function releaseOf(minor: string, field: string): Release {
  const release = RELEASES.get(minor);
  if (release !== undefined) return release;
  throw new RefitError(
    'REFIT_USAGE',
    `${field} wants a minor version of Kubernetes that has a manifest below tools/ (${[...RELEASES.keys()].join(', ')}), found "${minor}"; docs/internals/new-minor.md says how to add one`,
  );
}

/** Returns the release that the environment chooses. Throws REFIT_USAGE if there is no manifest for it. */
export function chosenRelease(environment: Readonly<Record<string, string | undefined>>): Release {
  return releaseOf(environment[CHOICE] || USUAL, CHOICE);
}
