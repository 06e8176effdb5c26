/** Names on the wire that controller and agent share: annotations, statuses, and the objects that carry signals. */
import { clusterScoped, type KubeObject, nodes, type Resource } from '../kube/resources.ts';

export const SIGNAL_VERSION_ANNOTATION = 'k0sproject.io/autopilot-signal-version';
export const SIGNAL_DATA_ANNOTATION = 'k0sproject.io/autopilot-signal-data';
/** Ours: `<uid of the plan>/<created>`, or `<uid>/<run>/<created>` where the plan had an earlier run, binds the signal beside it to one rollout. */
export const ROLLOUT_ANNOTATION = 'upgrade.refit.dev/rollout';
/** Ours, on a Node: `<rollout uid>.<created>` of the newest signal. NodeRestriction keeps the node from writing it. */
export const ATTEMPT_LABEL = 'node-restriction.kubernetes.io/refit-attempt';
/** Ours: the agent's report, as JSON. */
export const REPORT_ANNOTATION = 'upgrade.refit.dev/agent-report';
/** Ours: what the agent of Refit says of itself, as JSON (see agent-presence.ts). */
export const AGENT_ANNOTATION = 'upgrade.refit.dev/agent';
/** Ours, on the Node of a Machine: when its agent was last alive, and what was free there, as JSON (see agent-presence.ts). */
export const HEARTBEAT_ANNOTATION = 'upgrade.refit.dev/agent-heartbeat';
/** On the Node of a Machine, written by Cluster API. */
export const MACHINE_ANNOTATION = 'cluster.x-k8s.io/machine';
/** Ours: the policy for the signal beside it, as JSON. */
export const AGENT_POLICY_ANNOTATION = 'upgrade.refit.dev/agent-policy';
/** Ours, on a node that waits for its turn: what its agent fetches ahead, as JSON (see prefetch.ts). */
export const PREFETCH_ANNOTATION = 'upgrade.refit.dev/prefetch';
/** Ours, on a node before the first one starts: downloads that its agent tries, as JSON (see prefetch.ts). */
export const DOWNLOAD_CHECK_ANNOTATION = 'upgrade.refit.dev/check-downloads';
/** On the leader's Lease it names who cordons centrally; empty on a node's Lease, it lets the leader drain the node. */
export const CENTRAL_CORDONING_LABEL = 'autopilot.k0sproject.io/central-cordoning';
/** k0s's leaders are 32 hexadecimal digits; Refit's begin with the name of their host. */
export function isK0sLeader(holder: string): boolean {
  return /^[0-9a-f]{32}$/.test(holder);
}

/** On a ControlNode: `controller` or `controller+worker`. */
export const MODE_ANNOTATION = 'autopilot.k0sproject.io/mode';

/** In the order of an update; the two failures may end it at any point. The original knows no `RollingBack`, and waits. */
export const SIGNAL_STATUSES = [
  'Downloading',
  'Cordoning',
  'ApplyingUpdate',
  'Restart',
  'UnCordoning',
  'Completed',
] as const;
export type SignalStatus = (typeof SIGNAL_STATUSES)[number] | 'RollingBack' | FinalStatus;

const FINAL = ['Completed', 'Failed', 'FailedDownload'] as const;
export type FinalStatus = (typeof FINAL)[number];

export function isFinal(status: string | undefined): status is FinalStatus {
  return FINAL.some((final) => final === status);
}

export interface ControlNode extends KubeObject {
  status?: { addresses?: { address: string; type: string }[]; k0sVersion?: string };
}

export const controlNodes = clusterScoped<ControlNode>(
  'autopilot.k0sproject.io/v1beta2',
  'ControlNode',
);

/** The kinds of objects that an agent may work for, by the value of its flag --object. */
export const SIGNAL_OBJECTS: Readonly<Record<'node' | 'controlnode', Resource>> = {
  node: nodes,
  controlnode: controlNodes,
};

/** The Node of the same host, resolved as k0s does; undefined when no pods run there. */
export function nodeNameOf(object: ControlNode | undefined): string | undefined {
  if (object?.metadata.annotations?.[MODE_ANNOTATION] !== 'controller+worker') return undefined;
  return (
    object.status?.addresses?.find(({ type }) => type === 'Hostname')?.address ??
    object.metadata.name
  );
}
