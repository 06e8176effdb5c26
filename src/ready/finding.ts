/** Defines what `refit ready` finds about a cluster before an upgrade. */
import { listed } from '../util/phrases.ts';
import { printable } from '../util/printable.ts';
import { describeFinding, type Finding } from '../versions/findings.ts';
import type { ReadResult } from './asking.ts';

/** The checks in the order in which they are shown. Each value is the title of the check. */
export const CHECKS = {
  versions: 'versions and their distances',
  settings: 'flags and feature gates',
  apis: 'removed and deprecated APIs',
  webhooks: 'admission webhooks',
  drains: 'drains',
  room: 'room for evicted pods',
  operators: 'operators that act on a cordon',
  ground: 'machines, agents, policies and rights',
  health: 'health checks and alerts',
} as const;

export type CheckName = keyof typeof CHECKS;

export const CHECK_NAMES = Object.keys(CHECKS) as CheckName[];

/**
 * The state of a finding. `blocker`: the upgrade would fail, or would break something. `warning`: somebody should look
 * at it. `unknown`: Refit could not find out. `ok`: Refit looked, and found nothing wrong.
 */
export type FindingState = 'ok' | 'warning' | 'blocker' | 'unknown';

export interface ReadyFinding {
  readonly check: CheckName;
  readonly state: FindingState;
  /** The object that the finding is about, such as `ConfigMap kube-system/kubelet-config`; the cluster if it is absent. */
  readonly object?: string;
  /** What was found, as a sentence without its end. */
  readonly message: string;
  /** What to do about it, in the imperative. It is absent if there is nothing to do. */
  readonly cure?: string;
  /** The reason with which the user accepted the blocker. A blocker that is accepted is a warning. */
  readonly accepted?: string;
}

/** The findings of one check have its name in common. */
export type FoundBy = Omit<ReadyFinding, 'check'>;

export interface ReadyReport {
  /** The version to which the cluster is to go. */
  readonly to: string;
  /** The versions that the kubelets have now, each once, from the oldest to the newest. */
  readonly from: readonly string[];
  readonly findings: readonly ReadyFinding[];
}

/** Returns a finding for each question that has no answer. */
export function unansweredIn(results: readonly ReadResult<unknown>[]): FoundBy[] {
  return results.flatMap((each) =>
    each.kind === 'unknown' ? [{ state: 'unknown', message: each.why }] : [],
  );
}

/** Returns the finding for a rule of versions or hosts that is not kept. */
export function findingByRule(finding: Finding): FoundBy {
  const state = finding.severity === 'warn' ? 'warning' : 'blocker';
  return { state, message: describeFinding(finding) };
}

/**
 * Makes one finding of those about different objects that say the same, such as about each node of a cluster. `named`
 * returns how the finding names its objects.
 */
export function grouped(
  findings: readonly FoundBy[],
  named: (objects: readonly string[]) => string = listed,
): FoundBy[] {
  const groups = Map.groupBy(findings, ({ state, message }) => `${state} ${message}`);
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    const objects = [...new Set(group.flatMap(({ object }) => object ?? []))];
    if (first === undefined || objects.length === 0) return first ?? [];
    return [{ ...first, object: named(objects) }];
  });
}

/** A longer text of a finding is cut. Users of a namespace write some of it, such as the names of volumes. */
const LONGEST = 2000;

/** Returns the finding with texts that control no terminal, that fill no screen, and that begin no line of their own. */
export function cleaned(finding: ReadyFinding): ReadyFinding {
  const { object, message, cure } = finding;
  return {
    ...finding,
    message: cleanText(message),
    ...(object !== undefined && { object: cleanText(object) }),
    ...(cure !== undefined && { cure: cleanText(cure) }),
  };
}

export function cleanText(text: string): string {
  const shown = printable(text.slice(0, LONGEST));
  return text.length > LONGEST ? `${shown}…` : shown;
}

/** Returns the number of findings in this state. */
export function countOf({ findings }: Pick<ReadyReport, 'findings'>, state: FindingState): number {
  return findings.filter((each) => each.state === state).length;
}

/** The reasons with which a user accepts blockers, by the name of the check. */
export type Accepted = ReadonlyMap<CheckName, string>;

/** Returns the findings with a warning in place of each blocker that the user accepts. */
export function withAccepted(
  findings: readonly ReadyFinding[],
  accepted: Accepted,
): ReadyFinding[] {
  return findings.map((finding) => {
    const reason = accepted.get(finding.check);
    return finding.state === 'blocker' && reason !== undefined
      ? { ...finding, state: 'warning', accepted: reason }
      : finding;
  });
}
