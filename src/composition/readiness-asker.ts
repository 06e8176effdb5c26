/**
 * Makes the checks of `refit ready` for policies that require them. They take longer than a round of health checks, so they
 * run in the background, and a round gets the last answer.
 */
import type { AskReadyFor } from '../health/ask-check.ts';
import type { CheckFinding, ReadinessCheck } from '../health/checks.ts';
import { isForbidden } from '../kube/status-error.ts';
import { answer } from '../ready/asking.ts';
import { type ClusterParts, clusterContext } from '../ready/cluster-context.ts';
import { countOf, type ReadyReport } from '../ready/finding.ts';
import { askReadiness } from '../ready/readiness.ts';
import { messageOf } from '../util/errors.ts';
import { counted, listed } from '../util/phrases.ts';

/** An answer older than this is asked again. The checks read every pod, so they must not run often. */
const VALID_MS = 5 * 60_000;
/** Somebody may repair what is in the way, so such an answer is asked again earlier. */
const OPEN_VALID_MS = 60_000;
const MOST_BLOCKERS = 3;

export type ReadinessParts = Omit<ClusterParts, 'policyChecks' | 'groundChecks'>;

interface Known {
  readonly finding: CheckFinding;
  /** When the checks began, by the monotonic clock. */
  readonly askedAt: number;
}

/** Returns the answers for one cluster. */
export function readinessAsker(parts: ReadinessParts): AskReadyFor {
  const known = new Map<string, Known>();
  const asking = new Set<string>();
  const renew = async (to: string): Promise<void> => {
    asking.add(to);
    const askedAt = parts.clock.monotonic();
    known.set(to, { finding: await ask(parts, to), askedAt });
    asking.delete(to);
  };
  return ({ to = '' }: ReadinessCheck) => {
    const last = known.get(to);
    const validMs = last?.finding.state === 'passing' ? VALID_MS : OPEN_VALID_MS;
    const isOld = last === undefined || parts.clock.monotonic() - last.askedAt >= validMs;
    if (isOld && !asking.has(to)) void renew(to);
    return (
      last?.finding ?? {
        state: 'unknown',
        message: `the checks of \`refit ready --to ${to}\` run`,
        isPending: true,
      }
    );
  };
}

/** Never rejects. */
async function ask(parts: ReadinessParts, to: string): Promise<CheckFinding> {
  try {
    // The health checks of the policy and what the leader knows about itself have gates of their own.
    const of = { ...parts, policyChecks: answer([]), groundChecks: [] };
    const failures: string[] = [];
    const onUnanswered = (error: unknown): void => {
      // A right that the leader lacks does not come back by itself, so a plan does not wait for it.
      if (!isForbidden(error)) failures.push(messageOf(error));
    };
    const context = clusterContext({ ...of, onUnanswered });
    return findingOf(await askReadiness({ ...context, to }, new Map()), failures);
  } catch (error) {
    return { state: 'unknown', message: messageOf(error) };
  }
}

/**
 * Returns the finding for the gate. What the leader may not read does not count. `failures` says why other questions have
 * no answer. They hold the plan, because nobody knows what the API server would have answered.
 */
export function findingOf(report: ReadyReport, failures: readonly string[] = []): CheckFinding {
  const blockers = report.findings.filter(({ state }) => state === 'blocker');
  const unread = countOf(report, 'unknown');
  const unanswered = unread === 0 ? '' : `; ${counted(unread, 'question')} without an answer`;
  const command = `refit ready --to ${report.to}`;
  if (blockers.length === 0 && failures.length > 0)
    return {
      state: 'unknown',
      message: `${counted(failures.length, 'question')} without an answer: ${listed([...new Set(failures)], MOST_BLOCKERS)}`,
    };
  if (blockers.length === 0)
    return { state: 'passing', message: `no blocker for ${report.to}${unanswered}` };
  const first = blockers
    .slice(0, MOST_BLOCKERS)
    .map(({ object, message }) => (object === undefined ? message : `${object}: ${message}`));
  const rest = blockers.length - first.length;
  const more = rest === 0 ? '' : `, and ${rest} more`;
  return {
    state: 'failing',
    message: `${first.join('; ')}${more}; \`${command}\` shows all`,
  };
}
