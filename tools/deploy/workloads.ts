/**
 * Makes the Deployment of each process of Refit and its other objects: service account, Service, budget and
 * NetworkPolicy.
 */
import { VERSION } from '../../src/cli/version.ts';
import { CONTROLLER_LABEL } from '../../src/drain/own-pods.ts';
import { object, POD_SECURITY, REFIT_NAMESPACE } from './objects.ts';

/** The image has no registry in its name, because administrators add their own registry. */
const IMAGE = `refit:${VERSION}`;
const HEALTH_PORT = 8080;
/** The ports on which API servers listen, as Services and on hosts. Servers of channels and of checksums also use 443. */
const HTTPS_PORTS = [443, 6443];

interface Workload {
  /** The name of its objects, except the ServiceAccount. */
  readonly name: string;
  readonly namespace: string;
  readonly account: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A port that other components call, in addition to the port for health and metrics. */
  readonly hooks?: number;
  /** The directory into which each Secret is mounted, by the name of the Secret. */
  readonly secrets?: Readonly<Record<string, string>>;
}

export const K0S: Workload = {
  name: 'refit-controller',
  namespace: REFIT_NAMESPACE,
  account: 'refit-controller',
  args: ['controller', `--health-address=:${HEALTH_PORT}`],
};

/** The name, the namespace and the account are those of the original. */
export const CATTLE: Workload = {
  name: 'system-upgrade-controller',
  namespace: 'system-upgrade',
  account: 'system-upgrade',
  args: ['system-upgrade-controller'],
  env: {
    SYSTEM_UPGRADE_CONTROLLER_NAME: 'system-upgrade-controller',
    SYSTEM_UPGRADE_CONTROLLER_NAMESPACE: 'system-upgrade',
    SYSTEM_UPGRADE_CONTROLLER_LEADER_ELECT: 'true',
    SYSTEM_UPGRADE_CONTROLLER_HEALTH_ADDRESS: `:${HEALTH_PORT}`,
  },
};

const TLS_SECRET = 'refit-capi-extension-tls';

export const CAPI: Workload = {
  name: 'refit-capi-extension',
  namespace: REFIT_NAMESPACE,
  account: 'refit-capi',
  args: [
    'capi-extension',
    `--health-address=:${HEALTH_PORT}`,
    '--address=:9443',
    '--cert-dir=/certs',
    '--client-ca=/managers/ca.crt',
    '--payload-url=https://mirror.example.com/{version}/{os}-{arch}/k0s',
    '--checksum-url=https://mirror.example.com/{version}/{os}-{arch}/k0s.sha256',
  ],
  hooks: 9443,
  secrets: { [TLS_SECRET]: '/certs', 'refit-capi-managers': '/managers' },
};

/** Returns the Certificate for cert-manager. The chart inserts the names of issuer and Secret. */
export function hooksCertificate(): object {
  const { name, namespace } = CAPI;
  return object('cert-manager.io/v1', 'Certificate', TLS_SECRET, namespace, {
    spec: {
      secretName: TLS_SECRET,
      dnsNames: [`${name}.${namespace}.svc`],
      usages: ['digital signature', 'server auth'],
      privateKey: { algorithm: 'ECDSA', rotationPolicy: 'Always' },
      issuerRef: { group: 'cert-manager.io', kind: 'ClusterIssuer', name: 'cluster-api-hooks' },
    },
  });
}

const UI_PORT = 8443;
const UI_SECRET = 'refit-ui-tls';

/**
 * Returns the Service through which clients reach the dashboard of `refit controller`. The dashboard has its own
 * Service, because not everybody may reach health and metrics.
 */
export function uiService(): object {
  const { metadata, ...rest } = object('v1', 'Service', 'refit-ui', K0S.namespace, {
    spec: {
      selector: labelsOf(K0S),
      ports: [{ name: 'https', port: 443, targetPort: 'ui' }],
    },
  });
  return { ...rest, metadata: { ...metadata, labels: labelsOf(K0S) } };
}

/** Allows traffic to the port of the dashboard, and to no other port. */
export function uiNetworkPolicy(): object {
  return object('networking.k8s.io/v1', 'NetworkPolicy', 'refit-ui', K0S.namespace, {
    spec: {
      podSelector: { matchLabels: labelsOf(K0S) },
      policyTypes: ['Ingress'],
      ingress: [{ ports: [{ protocol: 'TCP', port: UI_PORT }] }],
    },
  });
}

/** Returns the Certificate for cert-manager. The chart inserts the names of issuer, Secret and hosts. */
export function uiCertificate(): object {
  return object('cert-manager.io/v1', 'Certificate', UI_SECRET, K0S.namespace, {
    spec: {
      secretName: UI_SECRET,
      dnsNames: [`refit-ui.${K0S.namespace}.svc`],
      usages: ['digital signature', 'server auth'],
      privateKey: { algorithm: 'ECDSA', rotationPolicy: 'Always' },
      issuerRef: { group: 'cert-manager.io', kind: 'ClusterIssuer', name: 'refit-ui' },
    },
  });
}

export function workload(of: Workload): object[] {
  return [
    object('v1', 'ServiceAccount', of.account, of.namespace, {}),
    deployment(of),
    object('policy/v1', 'PodDisruptionBudget', of.name, of.namespace, {
      spec: {
        maxUnavailable: 1,
        selector: { matchLabels: labelsOf(of) },
        // A pod that is not ready protects nothing, and must not block the drain of its node.
        unhealthyPodEvictionPolicy: 'AlwaysAllow',
      },
    }),
    service(of),
    networkPolicy(of),
  ];
}

function labelsOf({ name }: Workload): Record<string, string> {
  return { 'app.kubernetes.io/name': 'refit', 'app.kubernetes.io/component': name };
}

function deployment(of: Workload): object {
  const labels = labelsOf(of);
  return object('apps/v1', 'Deployment', of.name, of.namespace, {
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: {
        // This label is not in the selector, because the selector is immutable.
        metadata: { labels: { ...labels, [CONTROLLER_LABEL]: of.name } },
        spec: {
          serviceAccountName: of.account,
          securityContext: POD_SECURITY,
          ...placement(labels),
          containers: [container(of)],
          ...(of.secrets && {
            volumes: Object.keys(of.secrets).map((name) => ({
              name,
              secret: { secretName: name },
            })),
          }),
        },
      },
    },
  });
}

/**
 * A user who is root on a node can read the token of a pod there. On a control plane, this token gives root no new
 * rights. A k0s cluster often has no Node with this label.
 */
const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';
/** Taints that distributions give to control planes. */
const TAINTS = [
  CONTROL_PLANE,
  'node-role.kubernetes.io/master',
  'node-role.kubernetes.io/etcd',
  'CriticalAddonsOnly',
  // The taint of a cordon. On a single node, no other pod could end the upgrade that cordoned the node.
  'node.kubernetes.io/unschedulable',
];
/**
 * With this value, the scheduler gives a spread fewer points than the 200 points of a control plane, also if there is
 * only one control plane. An anti-affinity would outweigh all of these points, and would put the second replica onto a
 * worker.
 */
const MAX_SKEW = 3;

/** Prefers control planes first, and then different nodes. */
function placement(matchLabels: object): object {
  const preference = { matchExpressions: [{ key: CONTROL_PLANE, operator: 'Exists' }] };
  const topologyKey = 'kubernetes.io/hostname';
  return {
    affinity: {
      nodeAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference }],
      },
    },
    topologySpreadConstraints: [
      {
        maxSkew: MAX_SKEW,
        topologyKey,
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels },
      },
    ],
    tolerations: TAINTS.map((key) => ({ key, operator: 'Exists' })),
  };
}

function container({ args, env = {}, hooks, secrets = {} }: Workload): object {
  const probe = (path: string): object => ({ httpGet: { path, port: 'health' } });
  const variables = Object.entries(env).map(([name, value]) => ({ name, value }));
  const mounts = Object.entries(secrets).map(([name, mountPath]) => ({
    name,
    mountPath,
    readOnly: true,
  }));
  return {
    name: 'refit',
    image: IMAGE,
    imagePullPolicy: 'IfNotPresent',
    args,
    ...(variables.length > 0 && { env: variables }),
    ports: [
      { name: 'health', containerPort: HEALTH_PORT },
      ...(hooks === undefined ? [] : [{ name: 'hooks', containerPort: hooks }]),
    ],
    livenessProbe: probe('/healthz'),
    readinessProbe: probe('/readyz'),
    resources: { requests: { cpu: '50m', memory: '96Mi' }, limits: { memory: '512Mi' } },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    ...(mounts.length > 0 && { volumeMounts: mounts }),
  };
}

function service(of: Workload): object {
  const port = (name: string, number: number): object => ({ name, port: number, targetPort: name });
  const { metadata, ...rest } = object('v1', 'Service', of.name, of.namespace, {
    spec: {
      selector: labelsOf(of),
      ports: [
        port('health', HEALTH_PORT),
        ...(of.hooks === undefined ? [] : [port('hooks', of.hooks)]),
      ],
    },
  });
  return { ...rest, metadata: { ...metadata, labels: labelsOf(of) } };
}

/**
 * Allows incoming traffic for probes, scrapes and hooks. Allows outgoing traffic to DNS, to API servers, and to servers
 * on the HTTPS ports.
 */
function networkPolicy(of: Workload): object {
  const tcp = (port: number): object => ({ protocol: 'TCP', port });
  const dns = ['UDP', 'TCP'].map((protocol) => ({ protocol, port: 53 }));
  return object('networking.k8s.io/v1', 'NetworkPolicy', of.name, of.namespace, {
    spec: {
      podSelector: { matchLabels: labelsOf(of) },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [HEALTH_PORT, ...(of.hooks === undefined ? [] : [of.hooks])].map((port) => ({
        ports: [tcp(port)],
      })),
      egress: [{ ports: dns }, { ports: HTTPS_PORTS.map(tcp) }],
    },
  });
}
