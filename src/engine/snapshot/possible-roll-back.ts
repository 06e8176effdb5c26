/** Finds out how the leader could take a failed run back, from what the NodeRollout records about it. */

import type { KubeObject } from '../../kube/resources.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { World } from '../contract/world.ts';
import { isUnanswered, type PossibleRollBack, type Snapshot } from '../model/decision.ts';
import type { Rollout } from '../model/rollout.ts';

interface Scene {
  readonly dialect: Dialect;
  readonly plan: KubeObject;
  readonly rollout: Rollout;
  readonly world: World;
  readonly known: Pick<Snapshot, 'decisions'>;
}

const NOBODY = 'plans of this dialect are taken back by people only';

/** Returns undefined unless the rollout has failed. `now` is in milliseconds. */
export function possibleRollBack(
  { dialect, plan, rollout, world, known: { decisions } }: Scene,
  now: number,
): PossibleRollBack | undefined {
  const { rollBack } = dialect;
  if (rollBack === undefined) return { byHand: NOBODY };
  if ('byHand' in rollBack) return rollBack;
  if (rollout.phase !== 'failed') return undefined;
  if (typeof decisions !== 'object' || isUnanswered(decisions)) return 'unrecorded';
  const { history = [] } = decisions;
  const run = history.find(
    ({ id, planUid }) => id === rollout.id && planUid === rollout.source.uid,
  );
  // Only a run whose end is recorded keeps its place in the history when the next one begins.
  if (run?.ended === undefined) return 'unrecorded';
  return rollBack.planBack({ plan, rollout, world, run, history }, now);
}
