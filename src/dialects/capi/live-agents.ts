/** Finds out from a Node whether the agent there is alive, and has room for a payload. */
import { type Node, readyCondition } from '../../kube/resources.ts';
import { HEARTBEAT_MS, heartbeatOn } from '../../signal/agent-presence.ts';
import { formatDuration } from '../../util/duration.ts';

const SILENT_MS = 3 * HEARTBEAT_MS;

/** Milliseconds in which an agent that has just started says that it is there. */
export const STARTS_WITHIN_MS = 300_000;

/** kubeadm, kubelet and kubectl of v1.36.3 have 208 MiB together, and k0s has about as many. */
const PAYLOAD_MIB = 256;

/** How long the node or its agent has said nothing; undefined if that is no time. Throws if it may yet be alive. */
export function stalenessOf(node: Node, now: number): string | undefined {
  const { name } = node.metadata;
  const ready = readyCondition(node);
  // Kubelet and agent write both times by the clock of their host, so it may be wrong.
  const silentMs = Date.parse(ready?.lastHeartbeatTime ?? '') - Date.parse(heartbeatOn(node).at ?? '');
  const staleness =
    ready?.status === 'Unknown'
      ? `node ${name} has been silent since ${ready.lastTransitionTime}`
      : silentMs > SILENT_MS && `the agent on node ${name} has been silent for ${formatDuration(silentMs)}`;
  if (staleness && now - Date.parse(ready?.lastTransitionTime ?? '') < STARTS_WITHIN_MS)
    throw new Error(`${staleness}, and may be back soon`);
  return staleness || undefined;
}

/** Undefined also if the agent does not say how much there is. */
export function lackOfRoom(node: Node): string | undefined {
  const { room = Number.POSITIVE_INFINITY } = heartbeatOn(node);
  const freeMiB = Math.floor(room / 1024 ** 2);
  if (freeMiB >= PAYLOAD_MIB) return undefined;
  return `node ${node.metadata.name} has ${freeMiB} MiB free beside its reserve, and an update needs ${PAYLOAD_MIB} MiB`;
}
