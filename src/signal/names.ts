/** Owns the names on the wire that engine side and agent share: annotation keys, statuses, and the objects that carry signals. */
import { nodes, type Resource } from '../kube/resources.ts';
import type { KubeObject } from '../kube/types.ts';

export const SIGNAL_VERSION_ANNOTATION = 'k0sproject.io/autopilot-signal-version';
export const SIGNAL_DATA_ANNOTATION = 'k0sproject.io/autopilot-signal-data';
/** Ours: `<rollout uid>/<created>`, which binds the signal beside it to one rollout for good. */
export const ROLLOUT_ANNOTATION = 'upgrade.refit.dev/rollout';
/** Ours: what the agent knows beyond the status, as JSON (see report.ts). */
export const REPORT_ANNOTATION = 'upgrade.refit.dev/agent-report';
/** Ours: what the policy asks of the agent for the signal beside it, as JSON (see agent-policy.ts). */
export const AGENT_POLICY_ANNOTATION = 'upgrade.refit.dev/agent-policy';
/**
 * On the leader's Lease it names the holder that cordons centrally; on a node's Lease, empty, it says that the node lets
 * the leader do so.
 */
export const CENTRAL_CORDONING_LABEL = 'autopilot.k0sproject.io/central-cordoning';
/** On a ControlNode: `controller` or `controller+worker`. */
export const MODE_ANNOTATION = 'autopilot.k0sproject.io/mode';

/** In the order in which a node goes through them; the two failures end it at any point. */
export const SIGNAL_STATUSES = [
  'Downloading',
  'Cordoning',
  'ApplyingUpdate',
  'Restart',
  'UnCordoning',
  'Completed',
] as const;
export type SignalStatus = (typeof SIGNAL_STATUSES)[number] | 'FailedDownload' | 'Failed';

export interface ControlNode extends KubeObject {
  status?: { addresses?: { address: string; type: string }[]; k0sVersion?: string };
}

export const controlNodes: Resource<ControlNode> = {
  group: 'autopilot.k0sproject.io',
  version: 'v1beta2',
  kind: 'ControlNode',
  plural: 'controlnodes',
  namespaced: false,
};

/** The kinds of objects an agent may be bound to, by the word used on its command line. */
export const SIGNAL_OBJECTS: Readonly<Record<'node' | 'controlnode', Resource>> = {
  node: nodes,
  controlnode: controlNodes,
};

/** The name under which pods run on the host of this controller; undefined where none do. */
export function nodeNameOf(object: ControlNode | undefined): string | undefined {
  if (object?.metadata.annotations?.[MODE_ANNOTATION] !== 'controller+worker') return undefined;
  return object.status?.addresses?.find(({ type }) => type === 'Hostname')?.address ?? object.metadata.name;
}
