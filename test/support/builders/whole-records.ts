/** Builds what a turn records, for dialects that read only the projected plan. */
import type {
  RecordSharding,
  ShardedRecord,
  WholeRecord,
} from '../../../src/engine/contract/features.ts';
import type { World } from '../../../src/engine/contract/world.ts';
import type { FailureReasons } from '../../../src/engine/model/failures.ts';
import type { KubeObject } from '../../../src/kube/resources.ts';
import { buildRollout } from './rollouts.ts';

/** What a turn records that lets no target fail. */
export const NO_FAILURES: FailureReasons = { run: '', reasons: {} };

export function wholeRecordOf<P extends KubeObject>(projected: P): WholeRecord<P> {
  return { projected, rollout: buildRollout([]), failures: NO_FAILURES };
}

export function spreadBy<P extends KubeObject>(
  sharding: RecordSharding<P>,
  plan: P,
  projected: P,
  world: World,
  now: number,
): ShardedRecord<P> {
  return sharding.spread(plan, wholeRecordOf(projected), world, now);
}
