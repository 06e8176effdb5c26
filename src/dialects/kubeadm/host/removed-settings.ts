/**
 * Finds flags and feature gates that the target version no longer has, and gates that it no longer lets anyone change. A
 * component with one of them does not start.
 */
import { type Finding, hard, warn } from '../../../versions/findings.ts';
import {
  faultOf,
  nameOf,
  type Setting,
  settingsOfClusterConfiguration,
  settingsOfFlags,
  settingsOfGates,
} from '../../../versions/settings.ts';
import type { HostFacts } from './probe.ts';

/** The documents in the ConfigMaps of kubeadm; undefined if the cluster lacks one. */
export interface KubeadmDocuments {
  readonly cluster?: unknown;
  readonly kubelet?: unknown;
  readonly kubeProxy?: unknown;
}

const NAMESPACE = 'kube-system';

/** A setting in a ConfigMap from which kubeadm writes the configuration of all hosts. */
export interface ConfiguredSetting extends Setting {
  /** The ConfigMap, such as `ConfigMap kube-system/kubeadm-config`. */
  readonly object: string;
}

/**
 * Returns the settings of the documents that a later version of Kubernetes may not have. kubeadm writes the
 * configuration of all hosts from these documents.
 */
export function configuredSettings({
  cluster,
  kubelet,
  kubeProxy,
}: KubeadmDocuments): ConfiguredSetting[] {
  const gates = 'featureGates';
  return [
    ...placedIn('kubeadm-config', settingsOfClusterConfiguration(cluster)),
    ...placedIn('kubelet-config', settingsOfGates('kubelet', kubelet, gates)),
    ...placedIn('kube-proxy', settingsOfGates('kube-proxy', kubeProxy, gates)),
  ];
}

function placedIn(name: string, settings: readonly Setting[]): ConfiguredSetting[] {
  return settings.map((each) => ({ ...each, object: `ConfigMap ${NAMESPACE}/${name}` }));
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
  const inCluster = configured.flatMap((setting) =>
    findingsOf(setting, version, `${nameOf(setting)} of ${setting.object}`),
  );
  const onHosts = hosts.flatMap(({ host, kubeletFlags = [] }) =>
    kubeletFlags.flatMap(({ name, file, value }) =>
      settingsOfFlags('kubelet', [[name, value]], file).flatMap((setting) =>
        findingsOf(setting, version, `${host.name}: ${nameOf(setting)}`),
      ),
    ),
  );
  return [...inCluster, ...onHosts];
}

function findingsOf(setting: Setting, version: string, what: string): Finding[] {
  const fault = faultOf(setting, version);
  if (fault === undefined || fault.cleanedIn === setting.place) return [];
  const message = `${what}: ${fault.why}`;
  const cure = 'remove it before the upgrade';
  return [
    fault.isCertain ? hard('removed', message, cure) : warn('removed', `${message}; ${cure}`),
  ];
}
