/** Runs the real reconciler once for a Node, and lists its effects in their order. */

import { nodeRollouts } from '../../../src/api/kinds.ts';
import { capi } from '../../../src/dialects/capi/plan/capi-dialect.ts';
import { rolloutUidOf } from '../../../src/dialects/capi/plan/machine-groups.ts';
import { updateOn } from '../../../src/dialects/capi/plan/machine-update.ts';
import type { Dialect } from '../../../src/engine/contract/dialect.ts';
import {
  type RolloutPolicy,
  WITHOUT_DEADLINES,
} from '../../../src/engine/policy/rollout-policy.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { type KubeObject, type Node, nodes } from '../../../src/kube/resources.ts';
import { MemoryApi } from '../../support/builders/memory-api.ts';
import { buildReconciler } from '../../support/builders/reconcilers.ts';
import { buildPolicy } from '../../support/builders/rollout-policies.ts';
import { SECOND_WAVE } from '../cluster.ts';
import {
  type DrainDeed,
  type KnownDrain,
  recordingClient,
  recordingDrains,
  type WriteDeed,
} from '../deeds.ts';
import type { CapiConfiguration } from './capi-objects.ts';

/** Everything on which a decision depends. The process that decides remembers nothing. */
export interface CapiView {
  readonly configuration: CapiConfiguration;
  readonly now: number;
  /** The Nodes as they are on the API server. */
  readonly current: ReadonlyMap<string, Node>;
  /** The Nodes as the cache of the leader shows them. */
  readonly seen: ReadonlyMap<string, Node>;
  /** The names of the Nodes that were written since the cache was up to date. */
  readonly changed: readonly string[];
  readonly drains: ReadonlyMap<string, KnownDrain>;
  readonly isApproved: boolean;
}

/** One effect of a leader. Each one may be the last, because the process can end after it. */
export type CapiDeed = WriteDeed | DrainDeed;

/** Reconciles the Node with this name. */
export type CapiLeader = (view: CapiView, name: string) => Promise<readonly CapiDeed[]>;

type CapiDialect = Dialect<Node>;

export function leaderWith(
  dialect: CapiDialect = capi,
  ruled: (policy: RolloutPolicy) => RolloutPolicy = (policy) => policy,
): CapiLeader {
  return async (view, name) => {
    const { configuration, now } = view;
    const deeds: CapiDeed[] = [];
    const api = new MemoryApi();
    const policy = ruled(policyFor(configuration));
    const leader = buildReconciler(dialect, api, {
      client: recordingClient(clientIn(view, api.client), deeds, now),
      clock: { now: () => now, monotonic: () => 0, schedule: () => () => undefined },
      policyFor: (plan) => dialect.planRules?.apply(plan as Node, policy) ?? policy,
      drains: recordingDrains(view, deeds),
      prober: {
        askControlPlane: async (endpoints) =>
          await Promise.resolve(endpoints.map((each) => ({ name: each.name, ready: true }))),
      },
    });
    fill(api, view, () => leader.catchUp());
    await leader.reconcile(name);
    return deeds;
  };
}

export const realCapiLeader = leaderWith();

/** Fills the API server with the Nodes that are seen, and after `look` with those that have changed since. */
function fill(api: MemoryApi, { seen, current, changed }: CapiView, look: () => void): void {
  for (const node of seen.values()) api.put(nodes, node);
  look();
  for (const [name, node] of current) if (changed.includes(name)) api.put(nodes, node);
  for (const name of seen.keys()) if (!current.has(name)) api.remove(nodes, name);
}

function policyFor(configuration: CapiConfiguration): RolloutPolicy {
  const { waves, maxFailures } = configuration;
  return buildPolicy({
    prefetch: 'none',
    maxFailures,
    ...WITHOUT_DEADLINES,
    ...(waves && { waves: [{ count: 1 }, { needsApproval: waves === 'approved' }] }),
  });
}

/** Returns a client that reads the approvals of people. */
function clientIn({ isApproved, current }: CapiView, client: KubeClient): KubeClient {
  const get: KubeClient['get'] = async <T extends KubeObject>(
    ...[resource, name, more]: Parameters<typeof client.get<T>>
  ) => {
    if (resource.plural !== nodeRollouts.plural) return await client.get(resource, name, more);
    const runs = new Set(
      [...current.values()].flatMap((node) => {
        const update = updateOn(node);
        const uid = update && rolloutUidOf(update);
        return uid === undefined ? [] : `${uid}/${uid}`;
      }),
    );
    const approvals = isApproved
      ? [...runs].map((run) => ({ wave: SECOND_WAVE, by: 'anna', run }))
      : [];
    return { metadata: { name }, spec: { approvals } } as KubeObject as T;
  };
  return { ...client, get };
}
