/** Reads what people decided about a plan from its NodeRollout. */
import { nodeRollouts } from '../../api/kinds.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { isNotFound } from '../../kube/status-error.ts';
import { RefitError } from '../../util/errors.ts';
import type { Dialect } from '../contract/dialect.ts';
import { placeOf } from '../contract/node-rollout-place.ts';
import {
  acceptancesIn,
  approvalsIn,
  type DecisionsOfPeople,
} from '../model/decisions-of-people.ts';
import { earlierRunsIn } from '../model/earlier-versions.ts';
import { planReference } from '../model/plan-reference.ts';

/**
 * Resolves with the decisions of people; with no decisions if the NodeRollout does not exist yet. Rejects if the API
 * server does not serve NodeRollouts, or if it denies access to this NodeRollout. Otherwise a missing permission would
 * look like a missing decision.
 */
export async function readDecisions(
  client: KubeClient,
  dialect: Dialect,
  plan: KubeObject,
  abort?: AbortSignal,
): Promise<DecisionsOfPeople> {
  const place = placeOf(dialect, plan);
  const { namespace, name } = place?.subject ?? plan.metadata;
  const reference = planReference({ dialect: dialect.name, namespace, name });
  if (place === undefined)
    throw new RefitError(
      'REFIT_CONTROL',
      `${reference} has no NodeRollout, so nobody can approve its waves`,
    );
  const found = {
    plan: reference,
    place: `${place.namespace}/${place.name}`,
    exists: true,
    approvals: [],
    accepted: [],
  };
  try {
    const object = await client.get(nodeRollouts, place.name, {
      namespace: place.namespace,
      abort,
    });
    const { approvals, accepted } = object.spec ?? {};
    const history = object.status?.history ?? [];
    const earlierRuns = earlierRunsIn(history);
    return {
      ...found,
      approvals: approvalsIn(approvals),
      accepted: acceptancesIn(accepted),
      ...(earlierRuns.length > 0 ? { earlierRuns, history } : {}),
    };
  } catch (error) {
    if (!isNotFound(error)) throw error;
    if (error.status.details?.name === place.name) return { ...found, exists: false };
    throw new RefitError(
      'REFIT_CONTROL',
      'the API server does not serve NodeRollouts, where approvals are written: apply their definition, which `refit install controller` prints',
      { cause: error },
    );
  }
}
