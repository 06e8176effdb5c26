/** Judges whether somebody has approved a wave that needs approval. */
import { type DecisionContext, type Waiting, wait } from '../gates/types.ts';
import { untilAsked } from '../model/asked.ts';
import { approvalOf } from '../model/decisions-of-people.ts';
import { approvalEnds, needsApproval } from '../reasons/wave-approval.ts';

/**
 * Milliseconds until the leader reads the NodeRollout again. The leader does not watch NodeRollouts, because it needs
 * them only while a plan waits for approval.
 */
const RECHECK_MS = 5_000;

/**
 * Returns the numbers of the waves that need an approval and have none, counted from 1. Returns no waves while the
 * approvals cannot be read.
 */
export function unapprovedWaves(context: DecisionContext): number[] {
  const { waves = [] } = context.policy;
  return waves.flatMap((_wave, index) => approvalWait(context, index)?.unapproved ?? []);
}

/**
 * Returns the wait for the approval of the wave with this index, counted from 0; undefined if the wave needs no
 * approval, or is approved. Every target of the wave needs the approval, not only the first target. Otherwise a changed
 * label could move a node that has already started into the wave, and the wave would then count as approved.
 */
export function approvalWait(
  { snapshot, policy }: DecisionContext,
  index: number,
): Waiting | undefined {
  if (policy.waves?.[index]?.needsApproval !== true) return undefined;
  const { rollout } = snapshot;
  const { decisions } = snapshot.plan;
  const wave = index + 1;
  const needs = needsApproval(wave, policy.name);
  const asking = 'somebody approves the wave with `refit approve`';
  if (decisions.kind === 'never')
    return wait('WaveNeedsApproval', needs, asking, { unapproved: wave });
  if (decisions.kind === 'unasked')
    return wait('WaveNeedsApproval', `${needs}; its NodeRollout is being read`, asking, {
      isPassing: true,
      unapproved: wave,
      probe: { kind: 'decisions' },
    });
  if (decisions.kind === 'unanswered')
    return {
      kind: 'wait',
      ...untilAsked(decisions),
      ends: `the leader can read the approvals, and wave ${wave} has one`,
    };
  if (approvalOf(decisions.answer, rollout, wave)) return undefined;
  const { plan, place, exists } = decisions.answer;
  const missing = exists ? '' : `; the NodeRollout ${place} does not exist yet`;
  const ends = approvalEnds(plan, wave);
  return wait('WaveNeedsApproval', `${needs}${missing}`, ends, {
    recheckMs: RECHECK_MS,
    unapproved: wave,
  });
}
