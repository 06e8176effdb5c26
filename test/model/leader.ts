/** Owns running the real reconciler once, on a view of the cluster that the model has chosen, and catching its writes. */
import type { Plan } from '../../src/api/autopilot/plan.ts';
import { autopilot } from '../../src/dialects/autopilot/dialect.ts';
import type { Dialect } from '../../src/engine/dialect.ts';
import type { Role } from '../../src/engine/model.ts';
import type { View } from '../../src/engine/own-writes.ts';
import { OwnWrites } from '../../src/engine/own-writes.ts';
import type { CampaignPolicy } from '../../src/engine/policy/campaign-policy.ts';
import { createReconciler } from '../../src/engine/reconciler.ts';
import { type Views, viewsOf } from '../../src/engine/world.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { nodes } from '../../src/kube/resources.ts';
import { StatusError } from '../../src/kube/status-error.ts';
import type { KubeList, KubeObject } from '../../src/kube/types.ts';
import { controlNodes } from '../../src/signal/names.ts';
import { silentLogger } from '../../src/util/log.ts';

/** All that one decision depends on: which process decides makes no difference. */
export interface LeaderView {
  /** As its cache shows it. */
  readonly plan: Plan;
  /** As the API server has it. */
  readonly current: Plan;
  readonly objects: Readonly<Record<Role, readonly KubeObject[]>>;
  /** Names of the controllers whose API server says that it is not ready. */
  readonly down: readonly string[];
  readonly now: number;
  readonly policy: CampaignPolicy;
}

/** The objects that it asks the API server to write, as it sends them. */
export type Leader = (view: LeaderView) => Promise<readonly KubeObject[]>;

/**
 * A fresh process each time: what a leader remembers only ever makes it see more. Every write is refused as a conflict,
 * so that what would follow it is decided anew, on whatever is seen then.
 */
export function leaderWith(dialect: Dialect<Plan>): Leader {
  return async (view) => {
    const writes: KubeObject[] = [];
    const reconcile = createReconciler<Plan>({
      dialect,
      client: catchingClient(view.current, writes),
      ownWrites: new OwnWrites(),
      plans: viewOf([view.plan]),
      views: viewsOfRoles(view.objects),
      policyFor: () => view.policy,
      clock: { now: () => view.now, monotonic: () => 0, schedule: () => () => undefined },
      log: silentLogger,
      inquirer: {
        askControlPlane: async (endpoints) =>
          await Promise.resolve(endpoints.map(({ name }) => ({ name, ready: !view.down.includes(name) }))),
      },
      announce: () => undefined,
    });
    await reconcile(view.plan.metadata.name);
    return writes;
  };
}

export const realLeader = leaderWith(autopilot);

/** Each role's objects under the kind that the dialect gives it. */
export function viewsOfRoles({ controller, worker }: LeaderView['objects']): Views {
  return viewsOf([
    [controlNodes, viewOf(controller)],
    [nodes, viewOf(worker)],
  ]);
}

function viewOf<T extends KubeObject>(objects: readonly T[]): View<T> {
  return {
    get: (name) => objects.find(({ metadata }) => metadata.name === name),
    list: () => [...objects],
    resourceVersion: () => undefined,
  };
}

/** What a leader asks of the API server; anything else is a TypeError. */
function catchingClient(current: Plan, writes: KubeObject[]): KubeClient {
  const client: Pick<KubeClient, 'get' | 'listAll' | 'raw' | 'replace'> = {
    // No kind that a new version removes is served.
    raw: async () => await Promise.resolve({ status: 404, body: '' }),
    listAll: async <T extends KubeObject>() =>
      await Promise.resolve({ metadata: {}, items: [current as KubeObject as T] } as KubeList<T>),
    get: async <T extends KubeObject>() => await Promise.resolve(current as KubeObject as T),
    replace: async (_resource, object) => {
      writes.push(object);
      return await Promise.reject(new StatusError({ kind: 'Status', code: 409, reason: 'Conflict' }));
    },
  };
  return client as KubeClient;
}
