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

/** `look` reconciles the plan named `plan`, once `catchUp` has all caches show what the server has. */
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
