/** Runs the real reconciler once for a Plan of Rancher, and lists its effects in their order. */

import type { CattlePlan } from '../../../src/api/cattle/plan.ts';
import { cattlePlans } from '../../../src/api/kinds.ts';
import { cattle } from '../../../src/dialects/cattle/plan/cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from '../../../src/dialects/cattle/plan/config.ts';
import type { Drains } from '../../../src/drain/running-drains.ts';
import type { Dialect } from '../../../src/engine/contract/dialect.ts';
import type { RolloutPolicy } from '../../../src/engine/policy/rollout-policy.ts';
import type { HookRun } from '../../../src/hooks/rules.ts';
import type { HookRunner } from '../../../src/hooks/runner.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { jobs, type KubeObject, nodes, type Resource } from '../../../src/kube/resources.ts';
import { rfc3339 } from '../../../src/util/clock.ts';
import { MemoryApi } from '../../support/builders/memory-api.ts';
import { buildReconciler } from '../../support/builders/reconcilers.ts';
import { buildPolicy } from '../../support/builders/rollout-policies.ts';
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

export interface KnownDrain {
  readonly kind: 'draining' | 'drained';
  readonly owner: string;
}

/** One effect of a leader. Each one may be the last, because the process can end after it. */
export type CattleDeed =
  | { readonly kind: 'write'; readonly key: string; readonly object: KubeObject | undefined }
  /** A drain begins, or, without `drain`, it ends. */
  | { readonly kind: 'drain'; readonly node: string; readonly drain: KnownDrain | undefined }
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
      drains: drainsIn(view, deeds),
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

/** Returns a client that lists each successful write. The API server dates each object that is created. */
function recordingClient(
  client: KubeClient,
  deeds: CattleDeed[],
  now: number,
): Pick<KubeClient, 'create'> & KubeClient {
  const wrote = <T extends KubeObject>({ plural }: Resource<T>, object: T): T => {
    deeds.push({ kind: 'write', key: `${plural}/${object.metadata.name}`, object });
    return object;
  };
  return {
    ...client,
    create: async (resource, object, more) => {
      const metadata = { ...object.metadata, creationTimestamp: rfc3339(now) };
      return wrote(resource, await client.create(resource, { ...object, metadata }, more));
    },
    replace: async (resource, object, more) =>
      wrote(resource, await client.replace(resource, object, more)),
    patch: async (resource, name, patch, more) =>
      wrote(resource, await client.patch(resource, name, patch, more)),
    delete: async (resource, name, more) => {
      await client.delete(resource, name, more);
      deeds.push({ kind: 'write', key: `${resource.plural}/${name}`, object: undefined });
    },
  };
}

/** Lists which drains begin and end. The model decides when a drain is over. */
function drainsIn({ drains, now }: CattleView, deeds: CattleDeed[]): Drains {
  const known = new Map(drains);
  const end = (node: string): void => {
    if (!known.delete(node)) return;
    deeds.push({ kind: 'drain', node, drain: undefined });
  };
  return {
    stateOf: (node) => {
      const { kind } = known.get(node) ?? {};
      if (kind === undefined) return undefined;
      return kind === 'draining' ? { kind, since: now, left: 1 } : { kind: 'drained', since: now };
    },
    begin: (node, owner) => {
      if (known.has(node)) return;
      const drain: KnownDrain = { kind: 'draining', owner };
      known.set(node, drain);
      deeds.push({ kind: 'drain', node, drain });
    },
    forget: async (node) => await Promise.resolve(end(node)),
    keep: (isWanted) => {
      for (const [node, { owner }] of known) if (!isWanted(node, owner)) end(node);
    },
    onChange: () => () => undefined,
    run: async () => await Promise.resolve(),
  };
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
