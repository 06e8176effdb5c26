/** Owns the names of this host in the cluster: those of its ControlNode and of its Node. */
import { hostname } from 'node:os';
import type { ServicePlace } from '../service/service-place.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** What a kubelet on this host calls its Node. */
export function kubeletName(place: ServicePlace): string {
  return clean(place.hostnameOverride ?? hostname());
}

/**
 * What original controllers call themselves: AUTOPILOT_HOSTNAME, of the agent or else of the service, before the host's
 * own name.
 */
export function controlNodeName(place: ServicePlace, env: Environment): string {
  return clean(env['AUTOPILOT_HOSTNAME'] || place.hostname || hostname());
}

/** The name that the kubelet was told; without one as a controller's, which is how original workers find their Node. */
export function nodeName(place: ServicePlace, env: Environment): string {
  return place.hostnameOverride === undefined ? controlNodeName(place, env) : clean(place.hostnameOverride);
}

function clean(name: string): string {
  return name.trim().toLowerCase();
}
