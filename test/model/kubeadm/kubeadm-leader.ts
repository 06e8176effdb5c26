/** Runs the real reconciler once for the plan of `refit kubeadm apply`, and lists its effects in their order. */

import { kubeadmDialect } from '../../../src/dialects/kubeadm/plan/kubeadm-dialect.ts';
import type {
  HostUpgrade,
  HostUpgrades,
} from '../../../src/dialects/kubeadm/plan/kubeadm-signal.ts';
import { PLACE } from '../../../src/dialects/kubeadm/plan/plan-object.ts';
import type { Dialect } from '../../../src/engine/contract/dialect.ts';
import type { RolloutPolicy } from '../../../src/engine/policy/rollout-policy.ts';
import {
  type ConfigMap,
  configMaps,
  type KubeObject,
  nodes,
  type Resource,
} from '../../../src/kube/resources.ts';
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
import type { KubeadmConfiguration } from './kubeadm-objects.ts';
import { type Procedure, stateOf } from './kubeadm-state.ts';

/** Everything on which a decision depends. The process remembers only its drains and its procedures. */
export interface KubeadmView {
  readonly configuration: KubeadmConfiguration;
  readonly now: number;
  readonly objects: ReadonlyMap<string, KubeObject>;
  /** The drains of this process, by name of the Node. */
  readonly drains: ReadonlyMap<string, KnownDrain>;
  /** The procedures of this process, by the keys of their targets. */
  readonly procedures: ReadonlyMap<string, Procedure>;
  readonly hookJobs: readonly HookJob[];
}

/** One effect of a leader. Each one may be the last, because the process can end after it. */
export type KubeadmDeed =
  | WriteDeed
  | DrainDeed
  | HookDeed
  | { readonly kind: 'begin'; readonly key: string; readonly procedure: Procedure }
  | { readonly kind: 'acknowledge' | 'stop'; readonly key: string; readonly node: string };

export type KubeadmLeader = (view: KubeadmView) => Promise<readonly KubeadmDeed[]>;

const RESOURCES: readonly Resource[] = [configMaps, nodes];

/** What a mistake can replace. The functions are called for each decision. */
interface Changes {
  readonly dialectOf?: (upgrades: HostUpgrades, view: KubeadmView) => Dialect<ConfigMap>;
  readonly upgradesOf?: (upgrades: HostUpgrades) => HostUpgrades;
  readonly ruled?: (policy: RolloutPolicy) => RolloutPolicy;
}

export function leaderWith({
  dialectOf = kubeadmDialect,
  upgradesOf = (upgrades) => upgrades,
  ruled = (policy) => policy,
}: Changes = {}): KubeadmLeader {
  return async (view) => {
    const { objects, configuration, now } = view;
    const api = new MemoryApi();
    for (const [key, object] of objects) api.put(resourceAt(key), object);
    const deeds: KubeadmDeed[] = [];
    const dialect = dialectOf(upgradesOf(recordingUpgrades(view, deeds)), view);
    const policy = ruled(policyFor(configuration));
    const leader = buildReconciler(dialect, api, {
      client: recordingClient(api.client, deeds, now),
      clock: { now: () => now, monotonic: () => 0, schedule: () => () => undefined },
      policyFor: (plan) => dialect.planRules?.apply(plan as ConfigMap, policy) ?? policy,
      drains: recordingDrains(view, deeds),
      prober: {
        askControlPlane: async (endpoints) =>
          await Promise.resolve(endpoints.map(({ name }) => ({ name, ready: true }))),
      },
      ...(configuration.hasHook && { hooks: recordingHooks(view.hookJobs, deeds) }),
    });
    leader.catchUp();
    await leader.reconcile(`${PLACE.namespace}/${PLACE.name}`);
    return deeds;
  };
}

export const realKubeadmLeader = leaderWith();

function policyFor({ hasHook }: KubeadmConfiguration): RolloutPolicy {
  // The model has no kubelets that pull images before a host starts.
  return buildPolicy({ prefetch: 'none', ...(hasHook && { hooks: [hookAt('beforeDrain')] }) });
}

function resourceAt(key: string): Resource {
  const found = RESOURCES.find(({ plural }) => key.startsWith(`${plural}/`));
  if (!found) throw new RangeError(`no kind for ${key}`);
  return found;
}

/** Lists what the leader asks the procedures of its process to do. It treats them as `hostUpgrades` does. */
function recordingUpgrades(
  { procedures }: KubeadmView,
  deeds: Pick<KubeadmDeed[], 'push'>,
): HostUpgrades {
  const known = new Map(procedures);
  const state: HostUpgrades['stateOf'] = ({ key, since }) => {
    const procedure = known.get(key);
    if (procedure?.doing === 'ended' && procedure.attempt !== since) return undefined;
    return procedure && stateOf(procedure);
  };
  return {
    stateOf: state,
    isWaiting: ({ key }) => known.get(key)?.doing === 'draining',
    begin: async (work) => {
      await Promise.resolve();
      if (state(work.target)) return;
      const { key } = work.target;
      const procedure = procedureFor(work);
      known.set(key, procedure);
      deeds.push({ kind: 'begin', key, procedure });
    },
    acknowledge: ({ key, name }) => {
      const procedure = known.get(key);
      if (procedure?.doing !== 'draining') return;
      known.set(key, { ...procedure, doing: 'drained' });
      deeds.push({ kind: 'acknowledge', key, node: name });
    },
    stop: async (target) => {
      await Promise.resolve();
      const { key, name } = target;
      const procedure = known.get(key);
      if (!procedure || state(target) !== 'open') return;
      known.set(key, { ...procedure, doing: 'ended' });
      deeds.push({ kind: 'stop', key, node: name });
    },
  };
}

function procedureFor({ target, rollout, version, parts }: HostUpgrade): Procedure {
  return { node: target.name, rollout, attempt: target.since, version, parts, doing: 'begun' };
}
