/** Finds out how the leader could roll a failed run back, from what the NodeRollout records about that run. */

import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import type { KubeObject } from '../../kube/resources.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { World } from '../contract/world.ts';
import { type Asked, answerOf } from '../model/asked.ts';
import type { DecisionsOfPeople } from '../model/decisions-of-people.ts';
import type { PossibleRollBack } from '../model/possible-roll-back.ts';
import type { Rollout } from '../model/rollout.ts';
import { qualifiedRunId } from '../model/runs.ts';

interface Scene {
  readonly dialect: Dialect;
  readonly plan: KubeObject;
  readonly rollout: Rollout;
  readonly world: World;
  readonly decisions: Asked<DecisionsOfPeople>;
}

const NOBODY = 'only a person can roll back plans of this dialect';

/**
 * Returns how the leader could roll the run back; undefined if the dialect supports a roll-back by the leader but the
 * rollout has not failed. `now` is in milliseconds.
 */
export function possibleRollBack(
  { dialect, plan, rollout, world, decisions }: Scene,
  now: number,
): PossibleRollBack | undefined {
  const { rollBack } = dialect;
  if (rollBack === undefined) return { byHand: NOBODY };
  if ('byHand' in rollBack) return rollBack;
  if (rollout.phase !== 'failed') return undefined;
  const history = answerOf(decisions)?.history ?? [];
  const run = history.find(
    ({ id, planUid }) => id === rollout.id && planUid === rollout.source.uid,
  );
  // Only a run whose end is recorded stays in the history when the next run begins.
  if (run?.ended === undefined) return 'unrecorded';
  const earlier = rolledBackBefore(run, history);
  if (earlier !== undefined)
    return {
      obstacle: `run ${earlier.id} to the same version ${run.version} failed and was rolled back before: find the cause, or run refit rollback`,
    };
  return rollBack.planBack({ plan, rollout, world, run, history }, now);
}

/**
 * Returns an earlier run to the same version, if that run was rolled back. Without this check, a tool that writes the
 * failed spec again, such as a GitOps tool, could make the nodes switch between two versions forever.
 */
function rolledBackBefore(
  { planUid, version }: NodeRolloutRun,
  history: readonly NodeRolloutRun[],
): NodeRolloutRun | undefined {
  const back = new Set(history.map(({ rollsBack }) => rollsBack?.run));
  return history.find(
    (each) =>
      each.planUid === planUid &&
      each.version !== undefined &&
      each.version === version &&
      back.has(qualifiedRunId(each)),
  );
}
