/** Lists the parts of the control plane, etcdutl and Helm: each component's Go module, package, version and build flags. */

import { chosenRelease } from './releases.ts';

const release = chosenRelease(process.env);

export const KUBERNETES_VERSION = release.kubernetes;
const KWOK_VERSION = 'v0.8.0';
const HELM_VERSION = 'v4.2.4';

export type Component =
  | 'etcd'
  | 'etcdutl'
  | 'kube-apiserver'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'kubectl'
  | 'kwok'
  | 'helm';

export interface Recipe {
  /** Folder of the dependency manifest below `tools/`. */
  readonly module: string;
  readonly package: string;
  readonly version: string;
  readonly flags: readonly string[];
  /** A folder below `tools/` with the Go files of the package, if the package is ours. The module has what it imports. */
  readonly program?: string;
}

const stamp = 'k8s.io/component-base/version';

/** The linker sets the version of Kubernetes. Without a version, Kubernetes compares versions wrongly. */
export function kubernetesProgram(name: string, module: string, version: string): Recipe {
  const [major, minor] = version.slice(1).split('.');
  const versions = `-X ${stamp}.gitVersion=${version} -X ${stamp}.gitMajor=${major} -X ${stamp}.gitMinor=${minor}`;
  const flags = [
    '-tags',
    'providerless',
    '-ldflags',
    `-s -w ${versions} -X ${stamp}.gitTreeState=clean`,
  ];
  return { module, package: `k8s.io/kubernetes/cmd/${name}`, version, flags };
}

/** etcd is the package `server`. */
export function etcdProgram(
  path: 'server' | 'etcdctl' | 'etcdutl',
  module: string,
  version: string,
): Recipe {
  return { module, package: `go.etcd.io/etcd/${path}/v3`, version, flags: ['-ldflags', '-s -w'] };
}

const kubernetes = (name: string): Recipe =>
  kubernetesProgram(name, release.modules.kubernetes, release.kubernetes);

export const RECIPES: Readonly<Record<Component, Recipe>> = {
  etcd: etcdProgram('server', release.modules.etcd, release.etcd),
  etcdutl: etcdProgram('etcdutl', release.modules.etcdutl, release.etcd),
  'kube-apiserver': kubernetes('kube-apiserver'),
  'kube-controller-manager': kubernetes('kube-controller-manager'),
  'kube-scheduler': kubernetes('kube-scheduler'),
  kubectl: kubernetes('kubectl'),
  kwok: {
    module: 'kwok',
    package: 'sigs.k8s.io/kwok/cmd/kwok',
    version: KWOK_VERSION,
    flags: ['-ldflags', `-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=${KWOK_VERSION.slice(1)}`],
  },
  helm: {
    module: 'helm',
    package: 'helm.sh/helm/v4/cmd/helm',
    version: HELM_VERSION,
    flags: ['-ldflags', `-s -w -X helm.sh/helm/v4/internal/version.version=${HELM_VERSION}`],
  },
};
