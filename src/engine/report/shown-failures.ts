/** Reads from a NodeRollout why targets failed. Commands need it, because only the leader knows why it let a target fail. */
import type { NodeRollout, NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import type { FailureReasons } from '../model/failures.ts';
import { because, isReasonCode, type Reason } from '../model/reasons.ts';
import { qualifiedRunId } from '../model/runs.ts';
import { recordedReason } from '../reasons/recorded.ts';

type Failure = Pick<NonNullable<NodeRolloutRun['failures']>[number], 'reason' | 'message'>;

/** Returns what the leader has shown about the failures of this run; undefined if it has shown nothing about the run. */
export function failuresIn(
  shown: NodeRollout | undefined,
  run: string,
): FailureReasons | undefined {
  const entry = shown?.status?.history?.find((each) => qualifiedRunId(each) === run);
  if (entry === undefined) return undefined;
  const reasons = (entry.failures ?? []).map(
    (failure) => [failure.node, causeIn(failure)] as const,
  );
  const known = reasons.flatMap(([node, cause]): [string, Reason][] =>
    cause === undefined ? [] : [[node, cause]],
  );
  return { run, reasons: Object.fromEntries(known) };
}

/** Returns why the target failed; undefined if the record does not say it. */
export function causeIn({ reason, message }: Failure): Reason | undefined {
  if (message === undefined) return undefined;
  return recordedReason(because(isReasonCode(reason) ? reason : 'TargetFailed', message));
}
