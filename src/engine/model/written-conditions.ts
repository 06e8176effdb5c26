/** Reads the conditions of plans whose status has no room for them. */
import type { Condition, KubeObject } from '../../kube/resources.ts';
import type { Conditions } from '../../runtime/conditions.ts';
import { isRecord, parseJson } from '../../util/json.ts';
import { ownMember } from '../../util/own-member.ts';

/** JSON: a list as in `status.conditions` of other kinds. */
export const CONDITIONS_ANNOTATION = 'upgrade.refit.dev/conditions';

/** The generation of the spec with which the rollout of the plan ended, as conditions say; undefined while it runs, or if nothing says it. */
export function generationOfEnd(plan: KubeObject): number | undefined {
  const conditions = conditionsIn(plan.metadata.annotations?.[CONDITIONS_ANNOTATION]);
  const end = conditions.find(({ type, status }) => type === 'Progressing' && status === 'False');
  return Number.isSafeInteger(end?.observedGeneration) ? end?.observedGeneration : undefined;
}

/** Anybody may have written the annotation: anything but a list of conditions counts as absent. */
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
