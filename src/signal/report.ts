/** The agent's report: details beside the status, in an annotation of ours that original agents ignore. */
import { isRecord, parseJson } from '../util/json.ts';
import type { Annotations } from './codec.ts';
import { REPORT_ANNOTATION } from './names.ts';

export interface AgentReport {
  /** `created` of its signal: a report beside another signal is ignored. */
  readonly created: string;
  /** Version that ran before the update. */
  readonly from?: string;
  /** Milliseconds spent in each earlier status. */
  readonly spent?: Readonly<Record<string, number>>;
  /** Why it failed, for people; at most REASON_LIMIT characters. */
  readonly reason?: string;
  /** True when the previous binary was rolled back to and runs again. */
  readonly rolledBack?: boolean;
  /** Step that exceeded the time limit of the policy. */
  readonly late?: 'drain';
}

export const REASON_LIMIT = 512;

export function encodeReport(report: AgentReport): Record<string, string> {
  const reason = report.reason?.slice(0, REASON_LIMIT);
  return { [REPORT_ANNOTATION]: JSON.stringify({ ...report, ...(reason === undefined ? {} : { reason }) }) };
}

/** Undefined when there is no report for the signal `created`. */
export function decodeReport(annotations: Annotations | undefined, created: string): AgentReport | undefined {
  const value = parseJson(annotations?.[REPORT_ANNOTATION]);
  return isRecord(value) && value['created'] === created ? toReport(value, created) : undefined;
}

/** Others may write this annotation too: invalid members are ignored. */
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
