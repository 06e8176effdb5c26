/** Owns what Refit writes on a Node while its host is worked on: how far it is. */
import type { KubeObject } from '../../kube/types.ts';
import { isRecord } from '../../util/json.ts';

const REPORT = 'upgrade.refit.dev/kubeadm';

export interface Report {
  /** The rollout's uid and the target's key. */
  readonly rollout: string;
  readonly target: string;
  /** RFC 3339: `since` of the target when its work was begun. */
  readonly attempt: string;
  readonly state: 'working' | 'finished' | 'failed';
  readonly step: string;
  /** RFC 3339. */
  readonly since: string;
  /** The kubelet's version before. */
  readonly from?: string | undefined;
  /** True once something may lie on the host in the place of what was there, also by an attempt that was cut off. */
  readonly touched?: boolean | undefined;
  /** Milliseconds in each step that is over. */
  readonly spent: Readonly<Record<string, number>>;
  /** Why it failed, or what it waits for. */
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
