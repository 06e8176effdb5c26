/** Warns a user who is about to upgrade to a version that has already failed. */
import { nodeRollouts } from '../../api/kinds.ts';
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import type { KubeClient } from '../../kube/client.ts';
import { ifAllowed, ifFound } from '../../kube/status-error.ts';
import { causesOf, historyOf, type PlanHistory } from '../history/history.ts';
import { runNameIn } from '../history/run-names.ts';
import { fullNameOf } from '../status/text.ts';

/**
 * Resolves with a sentence for each plan whose last run to the version failed. A run that a later one has repaired is
 * not told. Without the kind NodeRollout, no run is recorded.
 */
export async function failedRunSentences(
  version: string,
  client: KubeClient,
  abort: AbortSignal,
): Promise<readonly string[]> {
  const listing = ifFound(client.listAll(nodeRollouts, { abort }));
  const found = await ifAllowed(listing.then((list) => list?.items ?? []));
  if (found === undefined)
    return [
      `You may not list NodeRollouts, so nobody can say here whether ${version} has failed before.`,
    ];
  return found.map(historyOf).flatMap((history) => failedRunSentence(version, history));
}

function failedRunSentence(version: string, history: PlanHistory): string[] {
  const { runs } = history;
  const last = runs.find((run) => run.version === version && run.rollsBack === undefined);
  if (last === undefined || !hasFailed(last)) return [];
  const [cause] = causesOf(last, runs);
  const why = cause === undefined ? '' : `: ${cause}`;
  return [
    `${fullNameOf(history)} has failed with ${version} before, in run ${runNameIn(runs, last)}, which started at ${last.started}${why}. Find the cause first, or take another version.`,
  ];
}

function hasFailed({ phase, counts }: NodeRolloutRun): boolean {
  // A run that somebody aborted has failed as well, but says nothing about the release.
  return phase !== 'done' && counts.failed > 0;
}
