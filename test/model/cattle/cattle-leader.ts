/** Runs the real reconciler once for a Plan of Rancher, and lists its effects in their order. */

import type { CattlePlan } from '../../../src/api/cattle/plan.ts';
import { cattlePlans } from '../../../src/api/kinds.ts';
import { cattle } from '../../../src/dialects/cattle/plan/cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from '../../../src/dialects/cattle/plan/config.ts';
import type { Dialect } from '../../../src/engine/contract/dialect.ts';
import type { RolloutPolicy } from '../../../src/engine/policy/rollout-policy.ts';
import type { HookRun } from '../../../src/hooks/rules.ts';
import type { HookRunner } from '../../../src/hooks/runner.ts';
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
import { type HookJob, jobOf, resultsOf } from '../hook-runs.ts';
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
export type CattleDeed =
  | WriteDeed
  | DrainDeed
  | { readonly kind: 'hook'; readonly job: HookJob; readonly node: string };

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
      ...(configuration.hasHook && { hooks: hooksIn(view, deeds) }),
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

/** Lists the Jobs of hooks that the leader creates. The API server refuses a second Job with the same name. */
function hooksIn({ hookJobs }: CattleView, deeds: CattleDeed[]): HookRunner {
  const present = new Set(hookJobs.map(({ id }) => id));
  const create = (run: HookRun): void => {
    if (present.has(run.id)) return;
    present.add(run.id);
    deeds.push({ kind: 'hook', job: jobOf(run), node: run.node ?? '' });
  };
  return {
    follow: (_plan, due) => due.forEach(create),
    forget: () => undefined,
    resultsOf: () => resultsOf(hookJobs),
    onChange: () => () => undefined,
    run: async () => await Promise.resolve(),
  };
}
