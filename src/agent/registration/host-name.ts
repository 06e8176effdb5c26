/** Finds the names of this host in the cluster: the name of its ControlNode and the name of its Node. */
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { Environment } from '../../http/proxy-choice.ts';
import { defined } from '../../util/json.ts';
import type { ServicePlace } from '../service/find-services.ts';

/**
 * Returns the name of the Node for the label of a ControlNode. This is the name under which the kubelet registers. It
 * may differ from the name of the ControlNode.
 */
export function kubeletName(place: ServicePlace): string {
  return clean(place.hostnameOverride ?? hostname());
}

/**
 * Returns the name, chosen as by the original agent: AUTOPILOT_HOSTNAME from the environment of the agent, otherwise
 * AUTOPILOT_HOSTNAME from the environment of the service, otherwise the host name.
 */
export function controlNodeName(place: ServicePlace, env: Environment): string {
  return clean(env['AUTOPILOT_HOSTNAME'] || place.hostname || hostname());
}

/**
 * Returns the name of the Node that carries signals. This is the name with which the kubelet overrides the host name.
 * Without an override it is the name of the ControlNode, as for the original workers.
 */
export function nodeName(place: ServicePlace, env: Environment): string {
  return place.hostnameOverride === undefined
    ? controlNodeName(place, env)
    : clean(place.hostnameOverride);
}

/**
 * Returns the name under which the kubelet of a kubeadm host registers its Node; undefined if that
 * is the host name.
 */
export async function findHostnameOverride(root: string): Promise<{ hostnameOverride?: string }> {
  const flags = await readFile(`${root}/var/lib/kubelet/kubeadm-flags.env`, 'utf8').catch(() => '');
  const [, hostnameOverride] = /--hostname-override=["']?([\w.-]+)/.exec(flags) ?? [];
  return defined({ hostnameOverride });
}

function clean(name: string): string {
  return name.trim().toLowerCase();
}
