/** The names of this host in the cluster: of its ControlNode and of its Node. */
import { hostname } from 'node:os';
import type { ServicePlace } from '../service/find-services.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Name of the Node that a kubelet on this host registers. */
export function kubeletName(place: ServicePlace): string {
  return clean(place.hostnameOverride ?? hostname());
}

/** As in the original: AUTOPILOT_HOSTNAME of the agent, else of the service, else the host's name. */
export function controlNodeName(place: ServicePlace, env: Environment): string {
  return clean(env['AUTOPILOT_HOSTNAME'] || place.hostname || hostname());
}

/** The kubelet's --hostname-override; without it the ControlNode's name, as original workers find their Node. */
export function nodeName(place: ServicePlace, env: Environment): string {
  return place.hostnameOverride === undefined ? controlNodeName(place, env) : clean(place.hostnameOverride);
}

function clean(name: string): string {
  return name.trim().toLowerCase();
}
