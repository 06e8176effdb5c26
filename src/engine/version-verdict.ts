/** Owns what the rules about versions say of a campaign: each target by what it runs now, and by what earlier stages bring it. */
import { factsOf } from './gate-input.ts';
import type { Snapshot } from './model.ts';
import type { CampaignPolicy } from './policy/campaign-policy.ts';
import { judgeVersions, type VersionVerdict } from './policy/version-rules.ts';
import { because, type Reason } from './reasons.ts';

export function versionVerdict(snapshot: Snapshot, { allow }: CampaignPolicy): VersionVerdict {
  const { campaign, apiServers } = snapshot;
  if (!apiServers) return { problems: [], unjudged: [] };
  const stages = campaign.stages
    .filter(({ keepsVersion }) => keepsVersion !== true)
    .map((stage) => ({
      ...stage,
      targets: stage.targets.map((target) => {
        const { version: current, node } = factsOf(snapshot, target);
        return { name: target.name, current, hasKubelet: stage.role === 'worker' || node !== undefined };
      }),
    }));
  return judgeVersions(stages, apiServers, allow);
}

/** Told once, when the campaign begins; undefined where every version is known. */
export function unjudgedReason(snapshot: Snapshot, policy: CampaignPolicy): Reason | undefined {
  const { unjudged } = versionVerdict(snapshot, policy);
  return unjudged.length === 0
    ? undefined
    : because('VersionUnjudged', `no rule of versions asked: ${unjudged.join('; ')}`);
}
