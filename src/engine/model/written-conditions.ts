/** Reads the conditions of plans whose status has no field for conditions. */
import type { Condition, KubeObject } from '../../kube/resources.ts';
import type { Conditions } from '../../runtime/conditions.ts';
import { isRecord, parseJson } from '../../util/json.ts';
import { ownMember } from '../../util/own-member.ts';

/** The annotation that holds these conditions. Its value is a JSON list, as in `status.conditions` of other kinds. */
export const CONDITIONS_ANNOTATION = 'upgrade.refit.dev/conditions';

/**
 * The annotation that says in one sentence for people why the plan waits, failed or does nothing. `kubectl get` shows
 * it. It is absent if there is nothing to say.
 */
export const MESSAGE_ANNOTATION = 'upgrade.refit.dev/message';

/**
 * Returns the generation of the spec with which the rollout of the plan ended, according to the conditions; undefined
 * while the rollout runs, or if the conditions do not contain the generation.
 */
export function generationOfEnd(plan: KubeObject): number | undefined {
  const conditions = conditionsIn(plan.metadata.annotations?.[CONDITIONS_ANNOTATION]);
  const end = conditions.find(({ type, status }) => type === 'Progressing' && status === 'False');
  return Number.isSafeInteger(end?.observedGeneration) ? end?.observedGeneration : undefined;
}

/**
 * Returns the generation of the spec that the leader knew when it wrote the conditions last; undefined if the conditions
 * do not contain it.
 */
export function generationSeen(plan: KubeObject): number | undefined {
  const conditions = conditionsIn(plan.metadata.annotations?.[CONDITIONS_ANNOTATION]);
  const seen = conditions.find(({ type }) => type === 'Progressing')?.observedGeneration;
  return Number.isSafeInteger(seen) ? seen : undefined;
}

/** Returns the conditions in the text of the annotation. Anybody may write the annotation, so any other text counts as an empty list. */
export function conditionsIn(text: string | undefined): Conditions {
  const list = parseJson(text);
  return Array.isArray(list) && list.every(isCondition) ? list : [];
}

function isCondition(entry: unknown): entry is Condition {
  if (!isRecord(entry) || typeof entry['type'] !== 'string' || typeof entry['status'] !== 'string')
    return false;
  return ['reason', 'message', 'lastTransitionTime'].every((name) =>
    ['string', 'undefined'].includes(typeof ownMember(entry, name)),
  );
}
