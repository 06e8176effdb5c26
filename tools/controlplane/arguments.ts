/** Builds the command line of each component. */
import { join } from 'node:path';
import { parseVersion } from '../../src/util/version.ts';
import { KUBERNETES_VERSION } from './components.ts';

export interface Layout {
  readonly directory: string;
  readonly etcdUrl: string;
  readonly etcdPeerUrl: string;
  readonly apiServerPort: number;
}

export const pkiPath = (directory: string, file: string): string => join(directory, 'pki', file);

/** The API server's own ClusterIP is the first address of this range. */
const SERVICE_RANGE = '10.96.0.0/16';

export function etcdArguments({ directory, etcdUrl, etcdPeerUrl }: Layout): string[] {
  return [
    `--data-dir=${join(directory, 'etcd')}`,
    `--listen-client-urls=${etcdUrl}`,
    `--advertise-client-urls=${etcdUrl}`,
    `--listen-peer-urls=${etcdPeerUrl}`,
    `--initial-advertise-peer-urls=${etcdPeerUrl}`,
    `--initial-cluster=default=${etcdPeerUrl}`,
    '--log-level=warn',
    // The data is deleted with the control plane anyway.
    '--unsafe-no-fsync',
    // There is only one member, so heartbeats have no receiver. The data need not be durable, so etcd may write it a
    // second late.
    '--heartbeat-interval=1000',
    '--election-timeout=10000',
    '--backend-batch-interval=1s',
  ];
}

/**
 * Kinds that no test watches. The watch cache of each of these kinds would wake up every second, even without requests.
 */
const UNCACHED = [
  'endpoints limitranges persistentvolumeclaims persistentvolumes podtemplates replicationcontrollers resourcequotas services',
  'cronjobs.batch horizontalpodautoscalers.autoscaling endpointslices.discovery.k8s.io runtimeclasses.node.k8s.io',
  ...['ingressclasses', 'ingresses', 'ipaddresses', 'networkpolicies', 'servicecidrs'].map(
    of('networking'),
  ),
  ...['deviceclasses', 'resourceclaims', 'resourceclaimtemplates', 'resourceslices'].map(
    of('resource'),
  ),
  ...['csidrivers', 'csinodes', 'csistoragecapacities'].map(of('storage')),
  ...['storageclasses', 'volumeattachments', 'volumeattributesclasses'].map(of('storage')),
]
  .flatMap((kinds) => kinds.split(' '))
  .map((kind) => `${kind}#0`);

function of(group: string): (kind: string) => string {
  return (kind) => `${kind}.${group}.k8s.io`;
}

export function apiServerArguments(
  { directory, etcdUrl, apiServerPort }: Layout,
  auditLog: string | undefined,
) {
  const pki = (file: string): string => pkiPath(directory, file);
  return [
    `--etcd-servers=${etcdUrl}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${apiServerPort}`,
    `--tls-cert-file=${pki('server.crt')}`,
    `--tls-private-key-file=${pki('server.key')}`,
    `--client-ca-file=${pki('ca.crt')}`,
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--allow-privileged',
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${pki('sa.pub')}`,
    `--service-account-signing-key-file=${pki('sa.key')}`,
    `--service-cluster-ip-range=${SERVICE_RANGE}`,
    // Without this flag, a server that stops waits a minute for open watches.
    '--shutdown-watch-termination-grace-period=1s',
    // No pod needs the `kubernetes` Service. Its endpoint would be a loopback address, which is refused every 10 s.
    '--endpoint-reconciler-type=none',
    // Nobody reads these metrics.
    '--etcd-count-metric-poll-period=0',
    '--etcd-db-metric-poll-interval=0',
    `--watch-cache-sizes=${UNCACHED.join()}`,
    ...(auditLog === undefined
      ? []
      : [
          `--audit-policy-file=${join(import.meta.dirname, 'audit-policy.yaml')}`,
          `--audit-log-path=${auditLog}`,
          '--audit-log-maxsize=10000',
        ]),
  ];
}

/** Arguments of both kube-controller-manager and kube-scheduler. */
function controllerArguments(directory: string, kubeconfig: string, port: number): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    '--leader-elect=false',
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
    `--tls-cert-file=${pkiPath(directory, 'server.crt')}`,
    `--tls-private-key-file=${pkiPath(directory, 'server.key')}`,
  ];
}

/**
 * The controllers of objects that no test has, such as volumes, services and clouds. Each of these controllers would
 * watch and write during the tests.
 */
const UNUSED_CONTROLLERS = [
  'certificatesigningrequest-cleaner',
  'cronjob',
  'endpoints',
  'endpointslice',
  'endpointslice-mirroring',
  'ephemeral-volume',
  'horizontal-pod-autoscaler',
  'legacy-serviceaccount-token-cleaner',
  'node-ipam',
  'persistentvolume-attach-detach',
  'persistentvolume-binder',
  'persistentvolume-expander',
  'persistentvolume-protection',
  'persistentvolumeclaim-protection',
  'replicationcontroller',
  'resourceclaim',
  'root-ca-certificate-publisher',
  'service-cidr',
  'storage-version-migrator',
  'storageversion-garbage-collector',
  'ttl',
  'validatingadmissionpolicy-status',
] as const;

/**
 * The same for controllers that not every release has, by the first and the last minor version of v1 that has them. A
 * kube-controller-manager does not start if its arguments name a controller that it lacks.
 */
const UNUSED_IN_SOME: Readonly<Record<string, { first?: number; last?: number }>> = {
  'cloud-node-lifecycle': { last: 36 },
  'device-taint-eviction': { first: 33 },
  'kube-apiserver-serving-clustertrustbundle-publisher': { first: 32 },
  'node-route': { last: 36 },
  'podcertificaterequest-cleaner': { first: 34 },
  'podgroup-protection': { first: 36 },
  resourcepoolstatusrequest: { first: 36 },
  'service-lb': { last: 36 },
  'volumeattributesclass-protection': { first: 32 },
};

/** Returns the argument that leaves out the unused controllers of this version of Kubernetes. */
export function controllersArgument(version: string): string {
  const minor = parseVersion(version)?.minor ?? 0;
  const some = Object.entries(UNUSED_IN_SOME).filter(
    ([, { first = 0, last = Number.POSITIVE_INFINITY }]) => first <= minor && minor <= last,
  );
  const unused = [...UNUSED_CONTROLLERS, ...some.map(([name]) => name)];
  return `--controllers=*,${unused.map((name) => `-${name}-controller`).join()}`;
}

/**
 * Returns the arguments of kube-controller-manager. `certificateLife` is the longest lifetime of certificates that the
 * cluster signs.
 */
export function controllerManagerArguments(
  directory: string,
  kubeconfig: string,
  port: number,
  certificateLife = '8760h',
): string[] {
  return [
    controllersArgument(KUBERNETES_VERSION),
    `--cluster-signing-duration=${certificateLife}`,
    ...controllerArguments(directory, kubeconfig, port),
    // The default limit of 20 requests a second would dominate a benchmark of many Jobs.
    '--kube-api-qps=1000',
    '--kube-api-burst=2000',
    '--concurrent-job-syncs=20',
    '--use-service-account-credentials',
    `--service-account-private-key-file=${pkiPath(directory, 'sa.key')}`,
    `--root-ca-file=${pkiPath(directory, 'ca.crt')}`,
    `--cluster-signing-cert-file=${pkiPath(directory, 'ca.crt')}`,
    `--cluster-signing-key-file=${pkiPath(directory, 'ca.key')}`,
    '--allocate-node-cidrs=false',
  ];
}

export const schedulerArguments = controllerArguments;

export function kwokArguments(kubeconfig: string, port: number): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--config=${join(import.meta.dirname, 'stages.yaml')}`,
    '--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake',
    '--node-lease-duration-seconds=40',
    '--cidr=10.250.0.0/16',
    '--node-ip=127.0.0.1',
    `--server-address=127.0.0.1:${port}`,
  ];
}
