/** Owns the agent's report: what it tells beyond the status, in an annotation of ours that original agents leave alone. */
import { isRecord } from '../util/json.ts';
import type { Annotations } from './codec.ts';
import { REPORT_ANNOTATION } from './names.ts';

export interface AgentReport {
  /** The `created` of the signal that this report belongs to: a report beside another signal means nothing. */
  readonly created: string;
  /** Version that ran before the agent touched anything. */
  readonly from?: string;
  /** Milliseconds spent in each status that is over. */
  readonly spent?: Readonly<Record<string, number>>;
  /** Why it failed, for people; at most REASON_LIMIT characters. */
  readonly reason?: string;
  /** True where the previous binary was put back and runs again. */
  readonly rolledBack?: boolean;
  /** What was not over within the time that the policy gave it, where it failed for that. */
  readonly late?: 'drain';
}

export const REASON_LIMIT = 512;

export function encodeReport(report: AgentReport): Record<string, string> {
  const reason = report.reason?.slice(0, REASON_LIMIT);
  return { [REPORT_ANNOTATION]: JSON.stringify({ ...report, ...(reason === undefined ? {} : { reason }) }) };
}

/** Undefined where there is no report, or one that belongs to another signal than `created`. */
export function decodeReport(annotations: Annotations | undefined, created: string): AgentReport | undefined {
  try {
    const value: unknown = JSON.parse(annotations?.[REPORT_ANNOTATION] ?? 'null');
    return isRecord(value) && value['created'] === created ? toReport(value, created) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Whoever may write to the object may write this: a member that is not what it should be is as good as absent. */
function toReport({ from, spent, reason, rolledBack, late }: Record<string, unknown>, created: string): AgentReport {
  return {
    created,
    ...(typeof from === 'string' ? { from } : {}),
    ...(isRecord(spent) ? { spent: timesIn(spent) } : {}),
    ...(typeof reason === 'string' ? { reason: reason.slice(0, REASON_LIMIT) } : {}),
    ...(typeof rolledBack === 'boolean' ? { rolledBack } : {}),
    ...(late === 'drain' ? { late } : {}),
  };
}

function timesIn(spent: Record<string, unknown>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(spent).filter((entry): entry is [string, number] => typeof entry[1] === 'number'),
  );
}
