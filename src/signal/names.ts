/** Owns the names on the wire that engine side and agent share: annotation keys, statuses, and the objects that carry signals. */
import type { Resource } from '../kube/resources.ts';
import { nodes } from '../kube/resources.ts';
import type { KubeObject } from '../kube/types.ts';

export const SIGNAL_VERSION_ANNOTATION = 'k0sproject.io/autopilot-signal-version';
export const SIGNAL_DATA_ANNOTATION = 'k0sproject.io/autopilot-signal-data';
/** Ours: `<campaign uid>/<created>`, which binds the signal beside it to one campaign for good. */
export const FENCE_ANNOTATION = 'upgrade.refit.dev/campaign';
/** Ours: what the agent knows beyond the status, as JSON (see report.ts). */
export const REPORT_ANNOTATION = 'upgrade.refit.dev/agent-report';

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
