/** Lists the parts of the control plane, etcdutl and Helm: each component's Go module, package, version and build flags. */

export const KUBERNETES_VERSION = 'v1.36.3';
export const ETCD_VERSION = 'v3.6.14';
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

const kubernetes = (name: string): Recipe => kubernetesProgram(name, 'kube', KUBERNETES_VERSION);

export const RECIPES: Readonly<Record<Component, Recipe>> = {
  etcd: {
    module: 'etcd',
    package: 'go.etcd.io/etcd/server/v3',
    version: ETCD_VERSION,
    flags: ['-ldflags', '-s -w'],
  },
  etcdutl: {
    module: 'etcdutl',
    package: 'go.etcd.io/etcd/etcdutl/v3',
    version: ETCD_VERSION,
    flags: ['-ldflags', '-s -w'],
  },
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
