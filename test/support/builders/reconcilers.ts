/** A reconciler over an in-memory API server, with one cache for each kind that the dialect watches. */
import type { Dialect } from '../../../src/engine/contract/dialect.ts';
import { createReconciler } from '../../../src/engine/loop.ts';
import { viewsOf } from '../../../src/engine/snapshot/world.ts';
import type { KubeObject } from '../../../src/kube/resources.ts';
import { FakeClock } from '../clock/fake-clock.ts';
import { T0 } from '../clock/times.ts';
import { knowledgeOf } from './knowledge.ts';
import type { MemoryApi } from './memory-api.ts';
import { buildPolicy } from './rollout-policies.ts';

type Options = Parameters<typeof createReconciler>[0];

/**
 * Returns a reconciler. `look` reconciles the plan named `plan`. `catchUp` updates all caches to the current objects of
 * the server, and must be called first.
 */
export function buildReconciler<P extends KubeObject>(
  dialect: Dialect<P>,
  api: MemoryApi,
  more: Partial<Options> = {},
) {
  const plans = api.view(dialect.plans);
  const watched = dialect.watched.map(({ resource }) => [resource, api.view(resource)] as const);
  const reconcile = createReconciler({
    dialect,
    client: api.client,
    plans,
    ...knowledgeOf(viewsOf(watched)),
    policyFor: () => buildPolicy(),
    clock: new FakeClock(T0),
    prober: { askControlPlane: async () => await Promise.resolve([]) },
    ...more,
  });
  const catchUp = (): void => {
    for (const view of [plans, ...watched.map(([, each]) => each)]) view.catchUp();
  };
  const look = async (): ReturnType<typeof reconcile> => {
    catchUp();
    return await reconcile('plan');
  };
  return { plans, catchUp, reconcile, look };
}
