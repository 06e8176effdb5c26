/**
 * Creates the spec with which the leader rolls back a failed run of k0s, or returns the reason why the leader must not
 * roll the run back.
 */
import { ORIGIN_ANNOTATION, type Plan } from '../../../api/autopilot/plan.ts';
import type {
  RollBackDelay,
  RollBackObstacle,
  RollBackPlan,
  RollBackScene,
} from '../../../engine/contract/features.ts';
import {
  isDownloadOf,
  type KnownDownload,
  knownDownloads,
} from '../../../engine/model/known-downloads.ts';
import { inState, type Rollout } from '../../../engine/model/rollout.ts';
import { qualifiedRunId } from '../../../engine/model/runs.ts';
import { controlNodes } from '../../../signal/names.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { RefitError } from '../../../util/errors.ts';
import { ownMember } from '../../../util/own-member.ts';
import { listedSentences } from '../../../util/phrases.ts';
import { K0S_MOST_BEHIND } from '../../../versions/k0s-rules.ts';
import { isOfEarlierFile, wayBackOfAll, wayBackOfNode } from '../../../versions/way-back.ts';
import {
  concurrentIn,
  type GoingBack,
  planBack,
  presentNodes,
  type UnableNode,
  type WaysBack,
  waysBack,
} from './roll-back-plan.ts';

const FEW = 3;
/**
 * The longest time that the leader waits after the end of a run until the nodes show their new versions, in
 * milliseconds. A kubelet needs up to 10 s to show its version.
 */
const SHOWN_WITHIN_MS = 120_000;

/**
 * Returns the Plan with a spec that rolls the run back, or the reason why the leader must wait or must not roll back.
 * The leader never rolls back only a part of the nodes, so every node of the run must be able to go back. Failed nodes
 * are the last in their stage, because they may fail again and then stop the stage.
 */
export function planBackOf(
  { plan, rollout, world, run, history }: RollBackScene<Plan>,
  now: number,
): RollBackPlan<Plan> | RollBackDelay | RollBackObstacle {
  if (ownMember(plan.metadata.annotations ?? {}, ORIGIN_ANNOTATION) !== undefined)
    return {
      obstacle:
        'an UpdateConfig made the Plan, and would install the same version again: delete the UpdateConfig, and run refit rollback',
    };
  try {
    // The run of the present rollout is the newest run, so there are no later runs.
    const ways = waysBack(run, presentNodes(world), []);
    // A node that has left the cluster runs nothing, so it does not keep the other nodes from going back.
    const unable = ways.unable.filter(({ why }) => why !== 'gone');
    const delay = delayOf(unable, run, now);
    if (delay !== undefined) return delay;
    const servers = world.list(controlNodes).map(({ status }) => status?.k0sVersion);
    const obstacle = obstacleOf(ways, unable, servers, now);
    if (obstacle !== undefined) return { obstacle };
    const moves = failedLast(ways.moves, rollout);
    const downloads = knownDownloads(history);
    const unannounced = delayUntil(unannouncedFiles(moves, downloads), run, now);
    if (unannounced !== undefined) return unannounced;
    const parts = { run: qualifiedRunId(run), downloads, concurrent: concurrentIn(plan) };
    const { spec } = planBack({ ...ways, moves }, parts, rfc3339(now));
    return { plan: { ...plan, spec }, names: moves.map(({ name }) => name) };
  } catch (error) {
    if (!(error instanceof RefitError)) throw error;
    return { obstacle: error.message };
  }
}

/**
 * Returns the reason why the leader waits before it rolls back; undefined if it has waited long enough, or if waiting
 * does not help.
 */
function delayOf(
  unable: readonly UnableNode[],
  run: RollBackScene<Plan>['run'],
  now: number,
): RollBackDelay | undefined {
  if (unable.some(({ why }) => why === 'unrecorded')) return undefined;
  const sentences = unable.map(({ sentence }) => sentence);
  return delayUntil(sentences, run, now);
}

/**
 * Returns a sentence for each node that would go back to the file that its host keeps, but whose agent has not announced
 * that file yet. The announcement may be older than the end of the run.
 */
function unannouncedFiles(
  moves: readonly GoingBack[],
  downloads: readonly KnownDownload[],
): string[] {
  return moves
    .filter(
      ({ platform, to }) =>
        !downloads.some((each) => each.platform === platform && isDownloadOf(each, to)),
    )
    .flatMap(({ name, kept, to }) =>
      isOfEarlierFile(kept, to)
        ? [
            `the agent of ${name} last announced that its host keeps ${kept.version} instead of ${to}`,
          ]
        : [],
    );
}

function delayUntil(
  sentences: readonly string[],
  { ended = '' }: RollBackScene<Plan>['run'],
  now: number,
): RollBackDelay | undefined {
  if (sentences.length === 0) return undefined;
  const leftMs = Date.parse(ended) + SHOWN_WITHIN_MS - now;
  if (!(leftMs > 0)) return undefined;
  return { awaits: listedSentences(sentences, FEW), leftMs: Math.min(leftMs, SHOWN_WITHIN_MS) };
}

function obstacleOf(
  { moves, left }: WaysBack,
  unable: readonly UnableNode[],
  servers: readonly (string | undefined)[],
  now: number,
): string | undefined {
  if (unable.length > 0)
    return listedSentences(
      unable.map(({ sentence }) => sentence),
      FEW,
    );
  if (moves.length === 0) return listedSentences(['no node goes back', ...left], FEW);
  const way = wayBackOfAll(
    moves.map(({ name, role, from, to }) => ({
      // `planBack` checks the files later: it throws if no file of a version is known.
      ...wayBackOfNode(
        { name, role, from: to, to: from, hasDownload: true },
        servers,
        now,
        K0S_MOST_BEHIND,
      ),
      name,
    })),
  );
  return way === undefined || way.state === 'open' ? undefined : way.message;
}

function failedLast(moves: readonly GoingBack[], { stages }: Rollout): GoingBack[] {
  const failed = new Set(
    stages.flatMap((stage) => inState(stage, 'failed').map(({ name }) => `${stage.role} ${name}`)),
  );
  const rank = ({ role, name }: GoingBack): number => (failed.has(`${role} ${name}`) ? 1 : 0);
  return moves.toSorted((a, b) => rank(a) - rank(b));
}
