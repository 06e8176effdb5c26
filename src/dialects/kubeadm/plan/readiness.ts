/** Reads the flags and feature gates that kubeadm gives to the components of Kubernetes. */
import { configMaps, type Pod, pods } from '../../../kube/resources.ts';
import type { Asking } from '../../../ready/asking.ts';
import {
  type DialectReadiness,
  type PlacedSetting,
  readPlace,
  type SettingsFound,
  together,
  unreadPlace,
} from '../../../ready/context.ts';
import { slimPod } from '../../../ready/pods.ts';
import { failing, messageOf } from '../../../util/errors.ts';
import { listed } from '../../../util/phrases.ts';
import { parseForeignYaml } from '../../../util/yaml.ts';
import {
  type Setting,
  settingsOfArguments,
  strangeGatesIn,
  strangePlacesOf,
} from '../../../versions/settings.ts';
import { configuredSettings, type KubeadmDocuments } from '../host/removed-settings.ts';

/** The documents by the names of their ConfigMaps and keys. */
const DOCUMENTS = [
  { name: 'kubeadm-config', key: 'ClusterConfiguration', document: 'cluster' },
  { name: 'kubelet-config', key: 'kubelet', document: 'kubelet' },
  { name: 'kube-proxy', key: 'config.conf', document: 'kubeProxy' },
] as const satisfies readonly { name: string; key: string; document: keyof KubeadmDocuments }[];
const NAMESPACE = 'kube-system';
const COMPONENTS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;

export const kubeadmReadiness: DialectReadiness = {
  async settings(asking) {
    const first = await asking.get(configMaps, DOCUMENTS[0].name, NAMESPACE);
    // Without this ConfigMap, kubeadm did not make the cluster.
    if (first.kind === 'answer' && first.value === undefined) return together([]);
    const found = await Promise.all(DOCUMENTS.map(async (each) => await settingsIn(each, asking)));
    return together([...found, await byHand(found, asking)]);
  },
  // Refit reaches these hosts over SSH, and only the manifest says how.
  machines: async () => await Promise.resolve([]),
};

async function settingsIn(
  { name, key, document }: (typeof DOCUMENTS)[number],
  { get }: Asking,
): Promise<SettingsFound> {
  const object = `ConfigMap ${NAMESPACE}/${name}`;
  const asked = await get(configMaps, name, NAMESPACE);
  if (asked.kind === 'unknown') return unreadPlace(object, asked.why);
  const text = asked.value?.data?.[key];
  if (text === undefined) return together([]);
  try {
    const value = parseForeignYaml(text, failing('REFIT_REFUSED', ''));
    const { settings, places, unread } = readPlace(
      object,
      configuredSettings({ [document]: value }),
    );
    const strange = document === 'cluster' ? strangePlacesOf(value) : strangeGatesIn(value);
    if (strange.length === 0) return { settings, places, unread };
    const why = `Refit does not understand the form of ${listed(strange)} in data.${key}`;
    return together([{ settings, places: [], unread }, unreadPlace(object, why)]);
  } catch (error) {
    return unreadPlace(object, `data.${key} is not valid YAML: ${messageOf(error)}`);
  }
}

/**
 * Returns the settings of running static pods that the ConfigMaps do not have. Somebody wrote them into a manifest by
 * hand, or with a patch.
 */
async function byHand(known: readonly SettingsFound[], { list }: Asking): Promise<SettingsFound> {
  const asked = await list(pods, { slim: slimPod });
  if (asked.kind === 'unknown')
    return unreadPlace('the static pods of the control plane', asked.why);
  const keyOf = ({ kind, component, name }: Setting): string => `${kind} ${component} ${name}`;
  const configured = new Set(known.flatMap(({ settings }) => settings.map(keyOf)));
  const own = asked.value.filter(({ metadata }) => metadata.namespace === NAMESPACE);
  const found = own.flatMap(settingsOfPod).filter((setting) => !configured.has(keyOf(setting)));
  return { settings: found, places: [], unread: [] };
}

function settingsOfPod({ metadata, spec }: Pod): PlacedSetting[] {
  const component = COMPONENTS.find((each) => metadata.labels?.['component'] === each);
  if (component === undefined) return [];
  const object = `Pod ${metadata.namespace}/${metadata.name}`;
  const [{ command = [], args = [] } = {}] = (spec?.containers ?? []) as {
    command?: string[];
    args?: string[];
  }[];
  return settingsOfArguments(
    component,
    [...command, ...args],
    `the static pod of ${component}`,
  ).map((each) => ({ ...each, object }));
}
