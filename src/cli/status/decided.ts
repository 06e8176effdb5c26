/** Says in sentences what people decided about the present run of a plan. */
import { answerOf } from '../../engine/model/asked.ts';
import { acceptanceOf, approvalOf, runOf } from '../../engine/model/decisions-of-people.ts';
import type { Snapshot } from '../../engine/model/snapshot.ts';
import type { RolloutPolicy } from '../../engine/policy/rollout-policy.ts';

/**
 * Returns one sentence for each approved wave and each accepted check of the policy. Only an admission policy ensures
 * that the user name in an entry is true. This command cannot see whether such a policy exists, so the sentence says
 * that the name comes from the entry.
 */
export function decidedIn(
  { plan: { decisions: asked }, rollout }: Snapshot,
  { waves = [], health }: RolloutPolicy,
  now: number,
): string[] {
  const decisions = answerOf(asked);
  if (decisions === undefined) return [];
  const approved = waves.flatMap(({ needsApproval }, index) => {
    const wave = index + 1;
    const found = needsApproval === true ? approvalOf(decisions, rollout, wave) : undefined;
    return found ? `wave ${wave} is approved, ${saysWho(found)}` : [];
  });
  const accepted = (health?.checks ?? []).flatMap(({ name }) => {
    const found = acceptanceOf(decisions, runOf(rollout), name, now);
    return found ? `the health check ${name} may fail, ${saysWho(found)}` : [];
  });
  return [...approved, ...accepted];
}

interface Said {
  readonly by: string;
  readonly at?: string;
  readonly reason?: string;
}

function saysWho({ by, at, reason }: Said): string {
  const when = at === undefined ? '' : ` at ${at}`;
  return `says ${by}${when}${reason === undefined ? '' : `: ${reason}`}`;
}
