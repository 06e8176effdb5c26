/** Owns what Refit writes on a Node while its host is worked on: how far it is, and whether the cordon is ours to undo. */
import type { KubeObject, Node } from '../../kube/types.ts';
import { isRecord } from '../../util/json.ts';

const REPORT = 'upgrade.refit.dev/kubeadm';
/** Holds the uid of the campaign that cordoned the node: one that was found cordoned does not get it, and stays so. */
const CORDONED = 'upgrade.refit.dev/kubeadm-cordoned';

export interface Report {
  /** The campaign's uid and the target's key. */
  readonly campaign: string;
  readonly target: string;
  /** RFC 3339: `since` of the target when its work was begun. */
  readonly attempt: string;
  readonly state: 'working' | 'finished' | 'failed';
  readonly step: string;
  /** RFC 3339. */
  readonly since: string;
  /** The kubelet's version before. */
  readonly from?: string | undefined;
  /** Milliseconds in each step that is over. */
  readonly spent: Readonly<Record<string, number>>;
  readonly message?: string | undefined;
}

/** Undefined where the node has none, or none that can be read. */
export function reportOn(node: KubeObject | undefined): Report | undefined {
  const text = node?.metadata.annotations?.[REPORT];
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && typeof value['attempt'] === 'string' ? (value as unknown as Report) : undefined;
  } catch {
    return undefined;
  }
}

/** A merge patch. */
export function reportPatch(report: Report): object {
  return { metadata: { annotations: { [REPORT]: JSON.stringify(report) } } };
}

/** The node as it shall be while its host is worked on; undefined where it is so already. A failed campaign's cordon is taken over. */
export function cordoned(node: Node, campaign: string): Node | undefined {
  const owner = node.metadata.annotations?.[CORDONED];
  if (node.spec?.unschedulable === true && (owner === undefined || owner === campaign)) return undefined;
  const annotations = { ...node.metadata.annotations, [CORDONED]: campaign };
  return { ...node, metadata: { ...node.metadata, annotations }, spec: { ...node.spec, unschedulable: true } };
}

/** The node as it was found; undefined where the cordon is not of this campaign. */
export function uncordoned(node: Node, campaign: string): Node | undefined {
  const { [CORDONED]: owner, ...annotations } = node.metadata.annotations ?? {};
  if (owner !== campaign) return undefined;
  const { unschedulable: _, ...spec } = node.spec ?? {};
  return { ...node, metadata: { ...node.metadata, annotations }, spec };
}
