/** Runs the real reconciler once for a family of works (Jobs, or work elsewhere), on a chosen view. */

import { createReconciler } from '../../../src/engine/loop.ts';
import { DEFAULT_POLICY } from '../../../src/engine/policy/rollout-policy.ts';
import { type View, viewsOf } from '../../../src/engine/snapshot/world.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { jobs, type KubeObject, nodes } from '../../../src/kube/resources.ts';
import { StatusError } from '../../../src/kube/status-error.ts';
import { knowledgeOf } from '../../support/builders/knowledge.ts';
import { buildNode } from '../../support/builders/nodes.ts';
import { NOW } from '../cluster.ts';
import type { WorkFamily, WorkPlan } from './families.ts';

export interface WorkView {
  readonly plan: WorkPlan;
  /** The plan as it is on the API server. */
  readonly current: WorkPlan;
  readonly targets: readonly string[];
  /** The objects that report the progress of the work, as the leader sees them. */
  readonly answers: readonly KubeObject[];
}

export interface WorkDeeds {
  /**
   * The plan that the leader records; undefined if it records nothing, or if its write requires an old version and is
   * refused.
   */
  readonly recorded: WorkPlan | undefined;
  /** Targets for which the leader requests work. */
  readonly asked: readonly string[];
}

export type WorkLeader = (family: WorkFamily, view: WorkView) => Promise<WorkDeeds>;

export const realWorkLeader: WorkLeader = async (family, { plan, current, targets, answers }) => {
  const asked: string[] = [];
  let recorded: WorkPlan | undefined;
  const refuse = async (): Promise<never> =>
    await Promise.reject(new StatusError({ kind: 'Status', code: 409, reason: 'Conflict' }));
  const client: Pick<KubeClient, 'get' | 'replace' | 'create'> = {
    get: async <T extends KubeObject>() => await Promise.resolve(current as KubeObject as T),
    replace: async (_resource, object) => {
      if (object.metadata.resourceVersion === current.metadata.resourceVersion)
        recorded = object as KubeObject as WorkPlan;
      return await refuse();
    },
    create: async (_resource, object) => {
      asked.push(object.metadata.name);
      return await Promise.resolve(object);
    },
  };
  const plain = targets.map((name) => buildNode(name));
  const reconcile = createReconciler({
    dialect: family.dialect((target) => asked.push(target)),
    client: client as KubeClient,
    plans: viewOf([plan]),
    ...knowledgeOf(
      viewsOf([
        [jobs, viewOf(family.answers === jobs ? answers : [])],
        [nodes, viewOf(family.answers === nodes ? answers : plain)],
      ]),
    ),
    policyFor: () => ({ ...DEFAULT_POLICY, targetDeadlineMs: Infinity }),
    clock: { now: () => NOW, monotonic: () => 0, schedule: () => () => undefined },
    prober: { askControlPlane: async () => await Promise.resolve([]) },
  });
  await reconcile(plan.metadata.name);
  return { recorded, asked };
};

function viewOf<T extends KubeObject>(objects: readonly T[]): View<T> {
  return {
    get: (name) => objects.find(({ metadata }) => metadata.name === name),
    list: () => [...objects],
    resourceVersion: () => undefined,
  };
}
