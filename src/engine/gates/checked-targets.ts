/**
 * Chooses the targets that must report, before the first target starts, whether they can download the files that the
 * plan names.
 */
import { forDownloads } from '../../signal/prefetch.ts';
import { sameJson } from '../../util/json.ts';
import { onceForEach } from '../../util/memo.ts';
import type { Signalling } from '../model/decision.ts';
import type { DownloadState } from '../model/downloads.ts';
import { hasStarted, withStages } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { pinAgainst } from './pins.ts';

export interface CheckedTarget extends Pick<Signalling, 'stage' | 'target'> {
  readonly downloads: DownloadState;
}

/**
 * The maximum number of targets of each stage and platform that are asked about their downloads. Each check costs two
 * writes.
 */
const MOST_CHECKED = 2;

export const targetsToCheck = onceForEach(({ rollout, targets }: Snapshot) =>
  onceForEach((policy: RolloutPolicy): CheckedTarget[] => {
    const { prefetch, planWindows, agent } = policy;
    if (hasStarted(rollout) || prefetch === 'none') return [];
    // A plan with windows of its own runs unattended, so all of its targets are asked.
    const most = prefetch === 'all' || planWindows !== undefined ? Infinity : MOST_CHECKED;
    const able = withStages(rollout).flatMap(
      ({ stage, target }): (CheckedTarget & { place: string })[] => {
        const known = targets.get(target.key);
        if (known === undefined) return [];
        const { downloads: said, isThere, platform } = known;
        // A node that already runs the version, or that is pinned to another version, downloads nothing.
        if (said === undefined || isThere) return [];
        if (pinAgainst(policy, stage, known) !== undefined) return [];
        const isOld = said.policy !== undefined && !sameJson(said.policy, forDownloads(agent));
        const downloads = isOld ? { ...said, answer: 'unasked' as const } : said;
        return [{ stage, target, downloads, place: `${stage.id} ${platform}` }];
      },
    );
    const chosen = [...Map.groupBy(able, ({ place }) => place).values()].flatMap((group) => {
      const first = group.slice(0, most);
      const bytes = first.reduce((most, { downloads }) => Math.max(most, downloads.bytes ?? 0), 0);
      // Nodes beyond this limit are asked, too, if they may lack room for the files whose sizes the first nodes have reported.
      const needed = bytes + (agent.diskReserveBytes ?? 0);
      return [
        ...first,
        ...group.slice(first.length).filter(({ downloads: { room = 0 } }) => room < needed),
      ];
    });
    // If two commands name a node, the node gets only one check, although each of its targets has its own key.
    return [
      ...new Map(chosen.map((each) => [`${each.stage.role} ${each.target.name}`, each])).values(),
    ];
  }),
);
