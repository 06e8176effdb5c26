/** Finds flags and feature gates that the target version no longer has. A component with one of them does not start. */
import { isRecord } from '../../../util/json.ts';
import { ownMember } from '../../../util/own-member.ts';
import { type Finding, hard, warn } from '../../../versions/findings.ts';
import {
  type ConfiguredComponent,
  gateNamesIn,
  type Removal,
  removedComponentFlag,
  removedFeatureGate,
  removedKubeadmGate,
  removedKubeletFlag,
} from '../../../versions/removed-settings.ts';
import type { HostFacts } from './probe.ts';

/** A setting in a ConfigMap from which kubeadm writes the configuration of all hosts. */
export interface ConfiguredSetting {
  /** `gate` is a feature gate of components, and `own-gate` is one of kubeadm itself. Otherwise it is a flag of the component. */
  readonly kind: 'gate' | 'own-gate' | ConfiguredComponent;
  readonly name: string;
  /** For example `apiServer.extraArgs of ConfigMap kube-system/kubeadm-config`. */
  readonly place: string;
}

/** The documents in the ConfigMaps of kubeadm; undefined if the cluster lacks one. */
export interface KubeadmDocuments {
  readonly cluster?: unknown;
  readonly kubelet?: unknown;
  readonly kubeProxy?: unknown;
}

const COMPONENTS = [
  ['apiServer', 'kube-apiserver'],
  ['controllerManager', 'kube-controller-manager'],
  ['scheduler', 'kube-scheduler'],
] as const;
const OF_KUBEADM = 'of ConfigMap kube-system/kubeadm-config';

/** Returns the settings of the documents that a later version of Kubernetes may not have. */
export function configuredSettings({
  cluster,
  kubelet,
  kubeProxy,
}: KubeadmDocuments): ConfiguredSetting[] {
  const ofComponents = COMPONENTS.flatMap(([field, component]) => {
    const place = `${field}.extraArgs ${OF_KUBEADM}`;
    return argumentsIn(memberOf(memberOf(cluster, field), 'extraArgs')).flatMap(
      ([name, value]): ConfiguredSetting[] => {
        if (name === 'feature-gates')
          return gateNamesIn(value).map((gate) => ({ kind: 'gate', name: gate, place }));
        return [{ kind: component, name, place }];
      },
    );
  });
  return [
    ...ofComponents,
    ...gatesIn(cluster, 'own-gate', `featureGates ${OF_KUBEADM}`),
    ...gatesIn(kubelet, 'gate', 'featureGates of ConfigMap kube-system/kubelet-config'),
    ...gatesIn(kubeProxy, 'gate', 'featureGates of ConfigMap kube-system/kube-proxy'),
  ];
}

function gatesIn(
  document: unknown,
  kind: ConfiguredSetting['kind'],
  place: string,
): ConfiguredSetting[] {
  const gates = memberOf(document, 'featureGates');
  return isRecord(gates) ? Object.keys(gates).map((name) => ({ kind, name, place })) : [];
}

/** Reads both forms: a map until v1beta3 of kubeadm's API, and a list of names and values since v1beta4. */
function argumentsIn(extraArgs: unknown): (readonly [name: string, value: string])[] {
  const pairs: (readonly [unknown, unknown])[] = Array.isArray(extraArgs)
    ? extraArgs.map((each) => [memberOf(each, 'name'), memberOf(each, 'value')])
    : Object.entries(isRecord(extraArgs) ? extraArgs : {});
  return pairs.flatMap(([name, value]) =>
    typeof name === 'string' && typeof value === 'string' ? [[name, value] as const] : [],
  );
}

function memberOf(value: unknown, name: string): unknown {
  return isRecord(value) ? ownMember(value, name) : undefined;
}

interface Settings {
  readonly configured?: readonly ConfiguredSetting[];
  readonly hosts: readonly Pick<HostFacts, 'host' | 'kubeletFlags'>[];
}

/** Returns a finding for each setting that `version` no longer has. `upgraded` are the names of the upgraded hosts. */
export function removedFindings(
  { configured = [], hosts: all }: Settings,
  version: string,
  upgraded: readonly string[],
): Finding[] {
  const hosts = all.filter(({ host }) => upgraded.includes(host.name));
  if (hosts.length === 0) return [];
  const inCluster = configured.flatMap((setting) => refusalOf(setting, version));
  const onHosts = hosts.flatMap(({ host, kubeletFlags = [] }) =>
    kubeletFlags.flatMap(({ name, file, value }) => {
      const flag = removedKubeletFlag(name, version);
      const isLeft = flag !== undefined && flag.cleanedIn !== file;
      const gatesOf = name === 'feature-gates' ? gateNamesIn(value) : [];
      return [
        ...refusal(
          isLeft ? flag : undefined,
          `${host.name}: flag --${name} in ${file}`,
          'the kubelet would not start',
        ),
        ...gatesOf.flatMap((gate) =>
          refusal(
            removedFeatureGate(gate, version),
            `${host.name}: feature gate ${gate} in ${file}`,
            'the kubelet would not start',
          ),
        ),
      ];
    }),
  );
  return [...inCluster, ...onHosts];
}

function refusalOf({ kind, name, place }: ConfiguredSetting, version: string): Finding[] {
  if (kind !== 'gate' && kind !== 'own-gate') {
    const what = `flag --${name} in ${place}`;
    return refusal(removedComponentFlag(kind, name, version), what, `${kind} would not start`);
  }
  const what = `feature gate ${name} in ${place}`;
  if (kind === 'gate')
    return refusal(removedFeatureGate(name, version), what, 'a component would not start');
  // It is not proved that `kubeadm upgrade` of each version refuses a gate that it does not know, as `kubeadm init` does.
  const own = removedKubeadmGate(name, version);
  if (own === undefined) return [];
  const found = `${what}: kubeadm 1.${own.since} removed it, so kubeadm may refuse this configuration (${own.sources[0]})`;
  return [warn('removed', `${found}; remove it before the upgrade`)];
}

function refusal(removal: Removal | undefined, what: string, effect: string): Finding[] {
  if (removal === undefined) return [];
  const found = `${what}: Kubernetes 1.${removal.since} removed it, so ${effect} (${removal.sources[0]})`;
  return [hard('removed', found, 'remove it before the upgrade')];
}
