/** Reads the flags and feature gates that k0s gives to the components of Kubernetes. */
import {
  type ConfigMap,
  configMaps,
  type KubeObject,
  kubeletVersionOf,
  type Node,
  namespaced,
  nodes,
} from '../../../kube/resources.ts';
import type { Asking } from '../../../ready/asking.ts';
import {
  type DialectReadiness,
  readPlace,
  type SettingsFound,
  together,
  unreadPlace,
} from '../../../ready/context.ts';
import type { FoundBy } from '../../../ready/finding.ts';
import { tellsCgroups } from '../../../signal/agent-presence.ts';
import { controlNodes } from '../../../signal/names.ts';
import { failing, messageOf } from '../../../util/errors.ts';
import { scalarText } from '../../../util/scalar-text.ts';
import { parseVersion } from '../../../util/version.ts';
import { parseForeignYaml } from '../../../util/yaml.ts';
import { COMPONENTS, type Component } from '../../../versions/minor-facts.ts';
import {
  memberOf,
  type Setting,
  settingsOfArguments,
  settingsOfExtraArgs,
  settingsOfGates,
  strangeGatesIn,
} from '../../../versions/settings.ts';
import {
  type AgentObjects,
  agentFindings,
  k0sHostFindings,
  withoutAgents,
} from '../../shared/agents-ground.ts';

const clusterConfigs = namespaced<KubeObject & { readonly spec?: unknown }>(
  'k0s.k0sproject.io/v1beta1',
  'ClusterConfig',
);
const NAMESPACE = 'kube-system';
const NAME = 'k0s';

/** The parts of a ClusterConfig that have arguments of a component. */
const PARTS: readonly (readonly [path: readonly string[], component: Component])[] = [
  [['api'], 'kube-apiserver'],
  [['controllerManager'], 'kube-controller-manager'],
  [['scheduler'], 'kube-scheduler'],
  [['network', 'kubeProxy'], 'kube-proxy'],
];

export const k0sReadiness: DialectReadiness = {
  async settings(asking) {
    const [config, present] = await Promise.all([
      asking.get(clusterConfigs, NAME, NAMESPACE),
      asking.list(nodes),
    ]);
    const runsK0s =
      (config.kind === 'answer' && config.value !== undefined) ||
      (present.kind === 'answer' && present.value.some(isOfK0s));
    if (!runsK0s) return together([]);
    return together([controllerSettings(config), await workerSettings(asking)]);
  },
  async cgroupsTold({ list }) {
    const found = await Promise.all([list(nodes), list(controlNodes)]);
    const objects = found.flatMap((asked) => (asked.kind === 'answer' ? asked.value : []));
    return new Set(objects.filter(tellsCgroups).map(({ metadata }) => metadata.name));
  },
  async machines({ list }, to) {
    const [workers, controllers] = await Promise.all([list(nodes), list(controlNodes)]);
    const hosts = controllers.kind === 'answer' ? controllers.value : [];
    const unread: FoundBy[] =
      controllers.kind === 'unknown'
        ? [{ state: 'unknown', message: `the controllers of k0s: ${controllers.why}` }]
        : [];
    const names = new Set(hosts.map(({ metadata }) => metadata.name));
    const all: readonly AgentObjects[] = [
      { kind: 'ControlNode', objects: hosts },
      {
        kind: 'Node',
        // The agent of a controller announces itself on the ControlNode, also if the host is a Node besides.
        objects: (workers.kind === 'answer' ? workers.value : []).filter(
          ({ metadata }) => !names.has(metadata.name),
        ),
      },
    ];
    const found = all.flatMap((each) => [
      ...agentFindings(each, 'k0s'),
      ...withoutAgents(each, 'k0s'),
      ...k0sHostFindings(each, to),
    ]);
    return [...unread, ...found];
  },
};

function isOfK0s(node: Node): boolean {
  return parseVersion(kubeletVersionOf(node))?.build.startsWith('k0s') === true;
}

function controllerSettings(asked: Awaited<ReturnType<Asking['get']>>): SettingsFound {
  const object = `ClusterConfig ${NAMESPACE}/${NAME}`;
  if (asked.kind === 'unknown') return unreadPlace(object, asked.why);
  if (asked.value === undefined)
    return unreadPlace(
      'the configuration of the k0s controllers',
      'it is in a file on each controller, because the cluster has no dynamic configuration',
    );
  return readPlace(object, settingsOfConfig((asked.value as { readonly spec?: unknown }).spec));
}

/** Returns the settings in the spec of a ClusterConfig, or of a configuration file of k0s. */
export function settingsOfConfig(spec: unknown): Setting[] {
  const ofParts = PARTS.flatMap(([path, component]) => {
    const part = path.reduce<unknown>((value, name) => memberOf(value, name), spec);
    const place = ['spec', ...path].join('.');
    const raw = memberOf(part, 'rawArgs');
    const rawArgs = Array.isArray(raw) ? raw.filter((each) => typeof each === 'string') : [];
    return [
      ...settingsOfExtraArgs(component, memberOf(part, 'extraArgs'), `${place}.extraArgs`),
      ...settingsOfArguments(component, rawArgs, `${place}.rawArgs`),
    ];
  });
  const profiles = memberOf(spec, 'workerProfiles');
  const ofProfiles = (Array.isArray(profiles) ? profiles : []).flatMap((profile) => {
    const name = scalarText(memberOf(profile, 'name'));
    return settingsOfGates(
      'kubelet',
      memberOf(profile, 'values'),
      `featureGates of spec.workerProfiles ${name}`,
    );
  });
  return [...ofParts, ...gatesOfAll(memberOf(spec, 'featureGates')), ...ofProfiles];
}

/** Reads `spec.featureGates`. A gate without components is set for all of them. */
function gatesOfAll(gates: unknown): Setting[] {
  return (Array.isArray(gates) ? gates : []).flatMap((gate: unknown) => {
    const name = memberOf(gate, 'name');
    if (typeof name !== 'string') return [];
    const named = memberOf(gate, 'components');
    const value = memberOf(gate, 'enabled') === true;
    const wanted = Array.isArray(named) && named.length > 0 ? named : COMPONENTS;
    return COMPONENTS.filter((component) => wanted.includes(component)).map(
      (component): Setting => ({
        kind: 'gate',
        component,
        name,
        value,
        place: 'spec.featureGates',
      }),
    );
  });
}

const WORKER_CONFIG = /^worker-config-(.+)-1\.\d+$/;

/** Reads the ConfigMaps from which k0s configures its kubelets. */
async function workerSettings({ list }: Asking): Promise<SettingsFound> {
  const asked = await list(configMaps, { namespace: NAMESPACE });
  if (asked.kind === 'unknown')
    return unreadPlace('the configuration of the k0s workers', asked.why);
  const found = asked.value.filter(({ metadata }) => WORKER_CONFIG.test(metadata.name));
  return together(found.map(settingsOfWorkers));
}

function settingsOfWorkers({ metadata, data = {} }: ConfigMap): SettingsFound {
  const object = `ConfigMap ${NAMESPACE}/${metadata.name}`;
  const key = 'kubeletConfiguration';
  try {
    const value = parseForeignYaml(data[key] ?? '', failing('REFIT_REFUSED', ''));
    if (strangeGatesIn(value).length > 0)
      return unreadPlace(object, `Refit does not understand the form of data.${key}`);
    return readPlace(object, settingsOfGates('kubelet', value, `featureGates of data.${key}`));
  } catch (error) {
    return unreadPlace(object, `data.${key} is not valid: ${messageOf(error)}`);
  }
}
