/**
 * Generates every file of deploy/chart that is not written by hand. The chart and the kustomize bases share these
 * manifests.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DefinedKind, definitionOf } from '../crds/definition.ts';
import { CUSTOM_KINDS } from '../crds/registry.ts';
import { agentDaemonSet } from './agent.ts';
import { chartReadme } from './chart-readme.ts';
import { dashboard, rules, serviceMonitor } from './monitoring.ts';
import { fileOf, object, REFIT_NAMESPACE, yamlOf } from './objects.ts';
import { copyOf, rightsOf } from './rights.ts';
import {
  CAPI,
  CATTLE,
  hooksCertificate,
  K0S,
  uiCertificate,
  uiNetworkPolicy,
  uiService,
  workload,
} from './workloads.ts';

const HERE = 'tools/deploy';
const CHART = 'deploy/chart';
const ROOT = join(import.meta.dirname, '..', '..');

export function deployFiles(): [string, string][] {
  const kinds = (group: string, names: string[]): string =>
    fileOf(
      'src/api',
      CUSTOM_KINDS.filter(
        ({ resource }) => resource.group === group && names.includes(resource.kind),
      ).map(crdYaml),
    );
  const folders: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    base: {
      'namespace.yaml': made([namespace()]),
      'kinds.yaml': kinds('upgrade.refit.dev', ['UpgradePolicy', 'NodeRollout']),
      'viewer.yaml': rightsOf('rbac.yaml', 'viewer'),
    },
    k0s: {
      'kinds.yaml': kinds('autopilot.k0sproject.io', ['Plan', 'ControlNode', 'UpdateConfig']),
      'shards.yaml': kinds('upgrade.refit.dev', ['StatusShard']),
      'rights.yaml': rightsOf('rbac.yaml', 'others'),
      'controller.yaml': made(workload(K0S)),
    },
    cattle: {
      'kinds.yaml': kinds('upgrade.cattle.io', ['Plan']),
      'rights.yaml': rightsOf('rbac-cattle.yaml', 'others'),
      'controller.yaml': made(workload(CATTLE)),
    },
    capi: {
      'kinds.yaml': kinds('upgrade.refit.dev', ['UpdaterSet']),
      'rights.yaml': rightsOf('rbac-capi.yaml', 'others'),
      'controller.yaml': made(workload(CAPI)),
    },
    'cert-manager': { 'certificate.yaml': made([hooksCertificate()]) },
    'workload-clusters': { 'rights.yaml': rightsOf('rbac-capi-clusters.yaml', 'others') },
    admission: {
      'signals.yaml': copyOf('admission-policy.yaml'),
      'k0s-plans.yaml': copyOf('admission-policy-k0s-plans.yaml'),
      'decisions.yaml': copyOf('admission-policy-decisions.yaml'),
    },
    approvers: { 'rights.yaml': rightsOf('rbac-approver.yaml', 'others') },
    updates: { 'rights.yaml': rightsOf('rbac-updates.yaml', 'others') },
    volumes: { 'rights.yaml': rightsOf('rbac-volumes.yaml', 'others') },
    ready: { 'rights.yaml': rightsOf('rbac-ready.yaml', 'others') },
    'eviction-requests': { 'rights.yaml': rightsOf('rbac-eviction-requests.yaml', 'others') },
    'node-conditions': { 'rights.yaml': rightsOf('rbac-node-conditions.yaml', 'others') },
    coordinate: { 'rights.yaml': rightsOf('rbac-coordinate.yaml', 'others') },
    'coordinate-kured': { 'rights.yaml': rightsOf('rbac-coordinate-kured.yaml', 'others') },
    health: { 'rights.yaml': rightsOf('rbac-health.yaml', 'others') },
    notify: { 'rights.yaml': rightsOf('rbac-notify.yaml', 'others') },
    silences: { 'rights.yaml': rightsOf('rbac-silences.yaml', 'others') },
    ui: {
      'service.yaml': made([uiService(), uiNetworkPolicy()]),
      'certificate.yaml': made([uiCertificate()]),
    },
    agent: { 'daemonset.yaml': made([agentDaemonSet()]) },
    monitoring: {
      'service-monitor.yaml': made([serviceMonitor()]),
      'rules.yaml': made([rules()]),
    },
    kubeadm: { 'rights.yaml': rightsOf('rbac-kubeadm.yaml', 'others') },
  };
  return [
    [`${CHART}/Chart.yaml`, chartYaml()],
    [`${CHART}/README.md`, chartReadme(readFileSync(join(ROOT, CHART, 'values.yaml'), 'utf8'))],
    [`${CHART}/manifests/monitoring/dashboard.json`, dashboard()],
    ...Object.entries(folders).flatMap(([folder, files]): [string, string][] => [
      ...Object.entries(files).map(([name, text]): [string, string] => [
        `${CHART}/manifests/${folder}/${name}`,
        text,
      ]),
      [
        `${CHART}/manifests/${folder}/kustomization.yaml`,
        kustomization(Object.keys(files), EXTRAS[folder]),
      ],
    ]),
  ];
}

export function crdYaml(kind: DefinedKind): string {
  return yamlOf(definitionOf(kind));
}

function made(objects: readonly object[]): string {
  return fileOf(HERE, objects.map(yamlOf));
}

function namespace(): object {
  const { metadata, ...rest } = object('v1', 'Namespace', REFIT_NAMESPACE, undefined, {});
  return {
    ...rest,
    metadata: { ...metadata, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
  };
}

/** Grafana's sidecar finds the ConfigMap by this label. */
const EXTRAS: Readonly<Record<string, object>> = {
  monitoring: {
    configMapGenerator: [
      { name: 'refit-dashboard', namespace: REFIT_NAMESPACE, files: ['dashboard.json'] },
    ],
    generatorOptions: { disableNameSuffixHash: true, labels: { grafana_dashboard: '1' } },
  },
};

function kustomization(resources: readonly string[], more: object = {}): string {
  return made([
    { apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization', resources, ...more },
  ]);
}

function chartYaml(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return made([chartOf(JSON.parse(manifest) as PackageManifest)]);
}

export interface PackageManifest {
  readonly version: string;
  readonly description: string;
  /** Empty if this copy of Refit has no page. */
  readonly homepage: string;
  /** Empty if the source is not published. */
  readonly repository: string;
}

/** Returns the content of Chart.yaml. Leaves out `home` and `sources` if they would not be true. */
export function chartOf({ version, description, homepage, repository }: PackageManifest): object {
  return {
    apiVersion: 'v2',
    name: 'refit',
    description,
    type: 'application',
    version,
    appVersion: version,
    kubeVersion: '>=1.30.0-0',
    ...(homepage === '' ? {} : { home: homepage }),
    ...(repository === '' ? {} : { sources: [repository] }),
    icon: iconAddress(),
  };
}

/** Returns the icon as a data URI, so that the chart names no server. */
function iconAddress(): string {
  const icon = readFileSync(join(ROOT, CHART, 'icon.svg'));
  return `data:image/svg+xml;base64,${icon.toString('base64')}`;
}
