/** Evictions of pods: deletions that a PodDisruptionBudget may refuse. */
import { isRecord } from '../../../src/util/json.ts';
import { decodeObject } from '../body.ts';
import type { Cluster } from '../cluster.ts';
import { ApiFailure, badRequest } from '../failure.ts';
import { getObject } from '../list.ts';
import type { ApiRequest, Target } from '../request.ts';
import type { ApiObject } from '../store.ts';
import { deleteObject, readDeleteOptions } from '../writes/delete.ts';
import { type Budget, budgetsOf } from './disruption.ts';
import { isReady } from './pod-kind.ts';

/** Phases in which the end of a pod disrupts nothing. */
const IDLE = ['Pending', 'Succeeded', 'Failed'];

/** Throws 429 if a budget allows no disruption; the pod then stays. */
export function evict(
  cluster: Cluster,
  request: ApiRequest,
  target: Target,
): Record<string, unknown> {
  const { metadata, deleteOptions = {} } = decodeObject(request, 'Eviction');
  if (!isRecord(metadata) || metadata['name'] !== target.name) {
    throw badRequest('name in URL does not match name in Eviction object');
  }
  const resource = cluster.resource('', 'pods');
  const options = readDeleteOptions(request.query, isRecord(deleteOptions) ? deleteOptions : {});
  const pod = getObject(resource, target);
  const { phase = '' } = pod.object['status'] as { phase?: string };
  const disrupts = !IDLE.includes(phase) && pod.object.metadata.deletionTimestamp === undefined;
  if (disrupts) checkBudgets(cluster, pod.object);
  if (options.dryRun !== true) {
    const marked = resource.collection.put(pod.key, withCondition(cluster, pod.object));
    deleteObject(cluster, resource, marked, { ...options, preconditions: {} });
  }
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };
}

function checkBudgets(cluster: Cluster, pod: ApiObject): void {
  const budgets = budgetsOf(cluster, pod).map(({ object }) => object as Budget);
  if (budgets.length > 1) {
    const why =
      'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';
    throw new ApiFailure(500, '', why);
  }
  const [budget] = budgets;
  if (!budget) return;
  const { disruptionsAllowed, desiredHealthy, currentHealthy } = budget.status;
  const enough = currentHealthy >= desiredHealthy && desiredHealthy > 0;
  const unguarded = budget.spec.unhealthyPodEvictionPolicy === 'AlwaysAllow' || enough;
  if (disruptionsAllowed > 0 || (!isReady(pod) && unguarded)) return;
  const need = `needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
  const causes = [
    {
      reason: 'DisruptionBudget',
      message: `The disruption budget ${budget.metadata.name} ${need}`,
    },
  ];
  const message = "Cannot evict pod as it would violate the pod's disruption budget.";
  throw new ApiFailure(429, 'TooManyRequests', message, { causes });
}

function withCondition(cluster: Cluster, pod: ApiObject): ApiObject {
  const next = structuredClone(pod);
  const status = next['status'] as { conditions?: Record<string, unknown>[] };
  const others = (status.conditions ?? []).filter(({ type }) => type !== 'DisruptionTarget');
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: cluster.timestamp(),
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  };
  status.conditions = [...others, condition];
  return next;
}
