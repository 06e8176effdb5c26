/** Finds flags and feature gates that the target version no longer has. A component with one of them does not start. */
import { isRecord } from '../../../util/json.ts';
import { ownMember } from '../../../util/own-member.ts';
import { type Finding, hard } from '../../../versions/findings.ts';
import {
  gateNamesIn,
  type Removal,
  removedFeatureGate,
  removedKubeletFlag,
} from '../../../versions/removed-settings.ts';
import type { HostFacts } from './probe.ts';

/** A feature gate in a ConfigMap from which kubeadm writes the configuration of all hosts. */
export interface ConfiguredGate {
  readonly name: string;
  /** For example `apiServer.extraArgs of ConfigMap kube-system/kubeadm-config`. */
  readonly place: string;
}

const COMPONENTS = ['apiServer', 'controllerManager', 'scheduler'] as const;

/** Returns the feature gates of the components in the ClusterConfiguration and in the KubeletConfiguration. */
export function configuredGates(cluster: unknown, kubelet: unknown): ConfiguredGate[] {
  const ofComponents = COMPONENTS.flatMap((component) => {
    const extraArgs = memberOf(memberOf(cluster, component), 'extraArgs');
    const place = `${component}.extraArgs of ConfigMap kube-system/kubeadm-config`;
    return gateArguments(extraArgs).flatMap((value) =>
      gateNamesIn(value).map((name) => ({ name, place })),
    );
  });
  const gates = memberOf(kubelet, 'featureGates');
  const ofKubelets = isRecord(gates) ? Object.keys(gates) : [];
  const place = 'featureGates of ConfigMap kube-system/kubelet-config';
  return [...ofComponents, ...ofKubelets.map((name) => ({ name, place }))];
}

/** Reads both forms: a map until v1beta3 of kubeadm's API, and a list of names and values since v1beta4. */
function gateArguments(extraArgs: unknown): string[] {
  const pairs: (readonly [unknown, unknown])[] = Array.isArray(extraArgs)
    ? extraArgs.map((each) => [memberOf(each, 'name'), memberOf(each, 'value')])
    : Object.entries(isRecord(extraArgs) ? extraArgs : {});
  return pairs.flatMap(([name, value]) =>
    name === 'feature-gates' && typeof value === 'string' ? value : [],
  );
}

function memberOf(value: unknown, name: string): unknown {
  return isRecord(value) ? ownMember(value, name) : undefined;
}

interface Settings {
  readonly gates?: readonly ConfiguredGate[];
  readonly hosts: readonly Pick<HostFacts, 'host' | 'kubeletFlags'>[];
}

/** Returns a refusal for each setting that `version` no longer has. `upgraded` are the names of the upgraded hosts. */
export function removedFindings(
  { gates = [], hosts: all }: Settings,
  version: string,
  upgraded: readonly string[],
): Finding[] {
  const hosts = all.filter(({ host }) => upgraded.includes(host.name));
  if (hosts.length === 0) return [];
  const inCluster = gates.flatMap(({ name, place }) =>
    refusal(removedFeatureGate(name, version), `feature gate ${name} in ${place}`, 'a component'),
  );
  const onHosts = hosts.flatMap(({ host, kubeletFlags = [] }) =>
    kubeletFlags.flatMap(({ name, file, value }) => {
      const flag = removedKubeletFlag(name, version);
      const isLeft = flag !== undefined && flag.cleanedIn !== file;
      const gatesOf = name === 'feature-gates' ? gateNamesIn(value) : [];
      return [
        ...refusal(
          isLeft ? flag : undefined,
          `${host.name}: flag --${name} in ${file}`,
          'the kubelet',
        ),
        ...gatesOf.flatMap((gate) =>
          refusal(
            removedFeatureGate(gate, version),
            `${host.name}: feature gate ${gate} in ${file}`,
            'the kubelet',
          ),
        ),
      ];
    }),
  );
  return [...inCluster, ...onHosts];
}

function refusal(removal: Removal | undefined, what: string, who: string): Finding[] {
  if (removal === undefined) return [];
  const found = `${what}: Kubernetes 1.${removal.since} removed it, so ${who} would not start (${removal.sources[0]})`;
  return [hard('removed', found, 'remove it before the upgrade')];
}
