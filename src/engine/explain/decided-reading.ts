/** Reads what people decided about the present run of a plan. */
import type { Assessment } from '../assess/assess.ts';
import { answerOf } from '../model/asked.ts';
import {
  type Acceptance,
  type Approval,
  acceptanceOf,
  approvalOf,
  runOf,
} from '../model/decisions-of-people.ts';

/** The approved waves, and the health checks of the policy that may fail. */
export interface DecidedReading {
  readonly approved: readonly Approval[];
  readonly accepted: readonly Acceptance[];
}

export function readDecided({ snapshot, policy, now }: Assessment): DecidedReading {
  const { rollout } = snapshot;
  const decisions = answerOf(snapshot.plan.decisions);
  if (decisions === undefined) return { approved: [], accepted: [] };
  const { waves = [], health } = policy;
  return {
    approved: waves.flatMap(({ needsApproval }, index) =>
      needsApproval === true ? (approvalOf(decisions, rollout, index + 1) ?? []) : [],
    ),
    accepted: (health?.checks ?? []).flatMap(
      ({ name }) => acceptanceOf(decisions, runOf(rollout), name, now) ?? [],
    ),
  };
}
