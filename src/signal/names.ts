/**
 * Defines the names in Kubernetes objects that the controller and the agents share: annotations, statuses, and the
 * objects that carry signals.
 */
import { clusterScoped, type KubeObject, nodes, type Resource } from '../kube/resources.ts';

export const SIGNAL_VERSION_ANNOTATION = 'k0sproject.io/autopilot-signal-version';
export const SIGNAL_DATA_ANNOTATION = 'k0sproject.io/autopilot-signal-data';
/**
 * Refit's annotation that binds a signal to one rollout. Its value is `<uid of the plan>/<created>`, or
 * `<uid>/<run>/<created>` if the plan had an earlier run.
 */
export const ROLLOUT_ANNOTATION = 'upgrade.refit.dev/rollout';
/**
 * Refit's label on a Node with `<rollout uid>.<created>` of the newest signal. The admission plugin NodeRestriction
 * prevents the node itself from writing this label.
 */
export const ATTEMPT_LABEL = 'node-restriction.kubernetes.io/refit-attempt';
/** Refit's annotation with the agent's report, as JSON. */
export const REPORT_ANNOTATION = 'upgrade.refit.dev/agent-report';
/** Refit's annotation with what the agent announces about itself, as JSON (see agent-presence.ts). */
export const AGENT_ANNOTATION = 'upgrade.refit.dev/agent';
/**
 * Refit's annotation on the Node of a Machine with the last heartbeat of its agent and the free space there, as JSON
 * (see agent-presence.ts).
 */
export const HEARTBEAT_ANNOTATION = 'upgrade.refit.dev/agent-heartbeat';
/** Cluster API writes this annotation on the Node of a Machine. */
export const MACHINE_ANNOTATION = 'cluster.x-k8s.io/machine';
/** Refit's annotation with the policy for the signal, as JSON. */
export const AGENT_POLICY_ANNOTATION = 'upgrade.refit.dev/agent-policy';
/**
 * Refit's annotation on a waiting node. It names what the agent of the node downloads before the node is signalled, as
 * JSON (see prefetch.ts).
 */
export const PREFETCH_ANNOTATION = 'upgrade.refit.dev/prefetch';
/**
 * Refit's annotation on a node. It names the downloads that the agent of the node checks before the first upgrade of a
 * rollout starts, as JSON (see prefetch.ts).
 */
export const DOWNLOAD_CHECK_ANNOTATION = 'upgrade.refit.dev/check-downloads';
/**
 * On the leader's Lease, the value of this label is the identity of the leader that cordons and drains nodes. On a node's
 * Lease, the value is empty, and the label lets the leader drain the node.
 */
export const CENTRAL_CORDONING_LABEL = 'autopilot.k0sproject.io/central-cordoning';
/**
 * Returns true if the holder of a Lease is a leader of k0s. The identity of a leader of k0s has 32 hexadecimal digits.
 * The identity of a leader of Refit begins with the name of its host.
 */
export function isK0sLeader(holder: string): boolean {
  return /^[0-9a-f]{32}$/.test(holder);
}

/** The value of this annotation on a ControlNode is `controller` or `controller+worker`. */
export const MODE_ANNOTATION = 'autopilot.k0sproject.io/mode';

/**
 * The statuses in the order of an upgrade. The statuses `Failed` and `FailedDownload` may end the upgrade at any point.
 * The autopilot of k0s does not know `RollingBack`, and waits while a node has this status.
 */
export const SIGNAL_STATUSES = [
  'Downloading',
  'Cordoning',
  'ApplyingUpdate',
  'Restart',
  'UnCordoning',
  'Completed',
] as const;

/** Every status that an agent reports. */
export const REPORTED_STATUSES = [
  ...SIGNAL_STATUSES,
  'RollingBack',
  'Failed',
  'FailedDownload',
] as const;
export type SignalStatus = (typeof REPORTED_STATUSES)[number];

const FINAL = ['Completed', 'Failed', 'FailedDownload'] as const;
export type FinalStatus = (typeof FINAL)[number];

/** Returns true if the status ends a signal. */
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

/** Maps each value of the agent's flag --object to the kind of the object that carries its signals. */
export const SIGNAL_OBJECTS: Readonly<Record<'node' | 'controlnode', Resource>> = {
  node: nodes,
  controlnode: controlNodes,
};

/** Returns the name of the Node on the same host, as k0s resolves it. Returns undefined if no pods run there. */
export function nodeNameOf(object: ControlNode | undefined): string | undefined {
  if (object?.metadata.annotations?.[MODE_ANNOTATION] !== 'controller+worker') return undefined;
  return (
    object.status?.addresses?.find(({ type }) => type === 'Hostname')?.address ??
    object.metadata.name
  );
}
