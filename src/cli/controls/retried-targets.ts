/** Finds what a retry of targets writes: the retries that are on the plan already, and the time that a retry names. */
import { factsOf } from '../../engine/gates/types.ts';
import { controlKey, RETRY_ANNOTATION } from '../../engine/model/controls.ts';
import type { Target } from '../../engine/model/rollout.ts';
import type { Snapshot } from '../../engine/model/snapshot.ts';
import { ownMember } from '../../util/own-member.ts';
import type { ControlledPlan } from './control.ts';

/** Returns the value of the annotation with the retries that are already on the plan; undefined if the plan has none. */
export function retriesOn({
  dialect,
  plan,
}: Pick<ControlledPlan, 'dialect' | 'plan'>): string | undefined {
  const { planObjects } = dialect;
  const key = controlKey(RETRY_ANNOTATION, planObjects?.controlPrefix);
  const { annotations } = (planObjects?.proved?.(plan) ?? plan).metadata;
  return ownMember(annotations, key);
}

/**
 * Returns the time of the failure in milliseconds since the Unix epoch, by the leader's clock: when the failure was
 * recorded, or when the attempt began if that is later.
 */
export function momentOf(failed: readonly [Target, ...Target[]], snapshot: Snapshot): number {
  const moments = failed.flatMap((target) => {
    const { observation } = factsOf(snapshot, target);
    return [target.since, ...(observation.kind === 'failed' ? [observation.attempt] : [])];
  });
  return Math.max(
    ...moments.map((text) => Date.parse(text)).filter((moment) => !Number.isNaN(moment)),
  );
}
