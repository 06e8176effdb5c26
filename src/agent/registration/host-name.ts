/** The names of this host in the cluster: of its ControlNode and of its Node. */
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { Environment } from '../../http/proxy-choice.ts';
import { defined } from '../../util/json.ts';
import type { ServicePlace } from '../service/find-services.ts';

/** The Node's name for a ControlNode's label: as the kubelet registers it, whatever names the ControlNode. */
export function kubeletName(place: ServicePlace): string {
  return clean(place.hostnameOverride ?? hostname());
}

/** As in the original: AUTOPILOT_HOSTNAME of the agent, else of the service, else the host's name. */
export function controlNodeName(place: ServicePlace, env: Environment): string {
  return clean(env['AUTOPILOT_HOSTNAME'] || place.hostname || hostname());
}

/** The Node's name for finding its object: the kubelet's override, else the ControlNode's name, as original workers do. */
export function nodeName(place: ServicePlace, env: Environment): string {
  return place.hostnameOverride === undefined
    ? controlNodeName(place, env)
    : clean(place.hostnameOverride);
}

/** On a kubeadm host: the kubelet's own name of its Node, if it is not the host's. */
export async function findHostnameOverride(root: string): Promise<{ hostnameOverride?: string }> {
  const flags = await readFile(`${root}/var/lib/kubelet/kubeadm-flags.env`, 'utf8').catch(() => '');
  const [, hostnameOverride] = /--hostname-override=["']?([\w.-]+)/.exec(flags) ?? [];
  return defined({ hostnameOverride });
}

function clean(name: string): string {
  return name.trim().toLowerCase();
}
