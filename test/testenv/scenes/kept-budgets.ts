/** The disruption controller of a scene: it computes how many pods of a budget may be evicted. */
import { isDeepStrictEqual } from 'node:util';
import {
  type Pod,
  type PodDisruptionBudget,
  podDisruptionBudgets,
  pods,
} from '../../../src/kube/resources.ts';
import type { Actor } from '../../scenes/stage.ts';

/** Returns the pods that the budget selects. The scenes select pods by their labels alone. */
function guardedBy({ metadata, spec }: PodDisruptionBudget, existing: readonly Pod[]): Pod[] {
  const wanted = Object.entries(spec?.selector?.matchLabels ?? {});
  return existing.filter(
    ({ metadata: { namespace, labels = {}, deletionTimestamp } }) =>
      namespace === metadata.namespace &&
      deletionTimestamp === undefined &&
      wanted.every(([key, value]) => labels[key] === value),
  );
}

export const keepBudgets: Actor = async ({ client }) => {
  const keep = async (budget: PodDisruptionBudget, existing: readonly Pod[]): Promise<void> => {
    const { name, namespace, generation } = budget.metadata;
    const guarded = guardedBy(budget, existing).length;
    // The budgets of the scenes name a number of pods, and no percentage.
    const minAvailable = Number(budget.spec?.minAvailable ?? 1);
    const status = {
      observedGeneration: generation,
      disruptionsAllowed: Math.max(0, guarded - minAvailable),
      currentHealthy: guarded,
      desiredHealthy: minAvailable,
      expectedPods: guarded,
    };
    if (isDeepStrictEqual({ ...budget.status, ...status }, budget.status)) return;
    const options = { namespace, type: 'merge', subresource: 'status' } as const;
    await client.patch(podDisruptionBudgets, name, { status }, options);
  };
  const tick = async (): Promise<void> => {
    const budgets = (await client.list(podDisruptionBudgets)).items;
    if (budgets.length === 0) return;
    const existing = (await client.list(pods)).items;
    for (const budget of budgets) await keep(budget, existing);
  };
  return await Promise.resolve({ tick });
};
