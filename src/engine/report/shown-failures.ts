/** Reads from a NodeRollout why targets failed. Commands need it, because only the leader knows why it let a target fail. */
import type { NodeRollout } from '../../api/refit/node-rollout.ts';
import type { FailureReasons } from '../model/failures.ts';
import { because, isReasonCode, type Reason } from '../model/reasons.ts';
import { qualifiedRunId } from '../model/runs.ts';

/** Returns what the leader has shown about the failures of this run; undefined if it has shown nothing about the run. */
export function failuresIn(
  shown: NodeRollout | undefined,
  run: string,
): FailureReasons | undefined {
  const entry = shown?.status?.history?.find((each) => qualifiedRunId(each) === run);
  if (entry === undefined) return undefined;
  const reasons = (entry.failures ?? []).flatMap(({ node, reason, message }): [string, Reason][] =>
    message === undefined
      ? []
      : [[node, because(isReasonCode(reason) ? reason : 'TargetFailed', message)]],
  );
  return { run, reasons: Object.fromEntries(reasons) };
}
