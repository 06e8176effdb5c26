/** Runs the real reconciler once for a Plan of Rancher, and lists its effects in their order. */

import type { CattlePlan } from '../../../src/api/cattle/plan.ts';
import { cattlePlans } from '../../../src/api/kinds.ts';
import { cattle } from '../../../src/dialects/cattle/plan/cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from '../../../src/dialects/cattle/plan/config.ts';
import type { Dialect } from '../../../src/engine/contract/dialect.ts';
import type { RolloutPolicy } from '../../../src/engine/policy/rollout-policy.ts';
import { jobs, type KubeObject, nodes, type Resource } from '../../../src/kube/resources.ts';
import { MemoryApi } from '../../support/builders/memory-api.ts';
import { buildReconciler } from '../../support/builders/reconcilers.ts';
import { buildPolicy } from '../../support/builders/rollout-policies.ts';
import {
  type DrainDeed,
  type KnownDrain,
  recordingClient,
  recordingDrains,
  type WriteDeed,
} from '../deeds.ts';
import { type HookDeed, type HookJob, recordingHooks } from '../hook-runs.ts';
import { hookAt } from '../leader-moves.ts';
import { type CattleConfiguration, NAMESPACE } from './cattle-objects.ts';

/** Everything on which a decision depends. The process that decides remembers nothing. */
export interface CattleView {
  readonly configuration: CattleConfiguration;
  readonly now: number;
  readonly objects: ReadonlyMap<string, KubeObject>;
  /** The drains of this process, by name of the Node. */
  readonly drains: ReadonlyMap<string, KnownDrain>;
  readonly hookJobs: readonly HookJob[];
}

/** One effect of a leader. Each one may be the last, because the process can end after it. */
export type CattleDeed = WriteDeed | DrainDeed | HookDeed;

export type CattleLeader = (view: CattleView) => Promise<readonly CattleDeed[]>;

const RESOURCES: readonly Resource[] = [cattlePlans, nodes, jobs];

export function dialectFor({ drains }: CattleConfiguration): Dialect<CattlePlan> {
  const job = { ...DEFAULT_JOB_SETTINGS, drainInJob: drains !== 'the leader' };
  return cattle({ name: 'controller', namespace: NAMESPACE, job });
}

/** Returns the leader that uses this dialect. The function is called for each decision, because a dialect remembers Jobs. */
export function leaderWith(
  dialectOf: (view: CattleView) => Dialect<CattlePlan> = ({ configuration }) =>
    dialectFor(configuration),
): CattleLeader {
  return async (view) => {
    const { objects, configuration, now } = view;
    const api = new MemoryApi();
    for (const [key, object] of objects) api.put(resourceAt(key), object);
    const deeds: CattleDeed[] = [];
    const dialect = dialectOf(view);
    const policy = policyFor(configuration);
    const leader = buildReconciler(dialect, api, {
      client: recordingClient(api.client, deeds, now),
      clock: { now: () => now, monotonic: () => 0, schedule: () => () => undefined },
      policyFor: (plan) => dialect.planRules?.apply(plan as CattlePlan, policy) ?? policy,
      drains: recordingDrains(view, deeds),
      ...(configuration.hasHook && { hooks: recordingHooks(view.hookJobs, deeds) }),
    });
    leader.catchUp();
    await leader.reconcile(`${NAMESPACE}/plan`);
    return deeds;
  };
}

export const realCattleLeader = leaderWith();

function policyFor({ hasHook }: CattleConfiguration): RolloutPolicy {
  // The model has no kubelets that pull images before a node starts.
  return buildPolicy({ prefetch: 'none', ...(hasHook && { hooks: [hookAt('beforeDrain')] }) });
}

function resourceAt(key: string): Resource {
  const found = RESOURCES.find(({ plural }) => key.startsWith(`${plural}/`));
  if (!found) throw new RangeError(`no kind for ${key}`);
  return found;
}
