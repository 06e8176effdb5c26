/** The progress of a host, in an annotation of its Node. */
import type { KubeObject } from '../../kube/types.ts';
import { isRecord, parseJson } from '../../util/json.ts';

const REPORT = 'upgrade.refit.dev/kubeadm';

export interface Report {
  /** Uid of the rollout, and key of the target. */
  readonly rollout: string;
  readonly target: string;
  /** RFC 3339: the target's `since` at the start. */
  readonly attempt: string;
  readonly state: 'working' | 'finished' | 'failed';
  readonly step: string;
  /** RFC 3339. */
  readonly since: string;
  /** The kubelet's version before. */
  readonly from?: string | undefined;
  /** True once something on the host may have been replaced, also by an earlier attempt that was killed. */
  readonly touched?: boolean | undefined;
  /** Milliseconds of each finished step. */
  readonly spent: Readonly<Record<string, number>>;
  /** Why it failed, or what it waits for. */
  readonly message?: string | undefined;
}

/** Undefined if there is no valid report. */
export function reportOn(node: KubeObject | undefined): Report | undefined {
  const value = parseJson(node?.metadata.annotations?.[REPORT]);
  return isRecord(value) && typeof value['attempt'] === 'string' ? (value as unknown as Report) : undefined;
}

/** A merge patch. */
export function reportPatch(report: Report): object {
  return { metadata: { annotations: { [REPORT]: JSON.stringify(report) } } };
}
