/** Runs the real reconciler once on a chosen view of the cluster, and records its writes. */

import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { nodeRollouts } from '../../src/api/kinds.ts';
import { autopilot } from '../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import type { DrainState, Drains } from '../../src/drain/running-drains.ts';
import type { Dialect } from '../../src/engine/contract/dialect.ts';
import { createReconciler } from '../../src/engine/loop.ts';
import type { Role } from '../../src/engine/model/rollout.ts';
import type { RolloutPolicy } from '../../src/engine/policy/rollout-policy.ts';
import {
  NOTHING,
  OwnWrites,
  type View,
  type Views,
  viewsOf,
} from '../../src/engine/snapshot/world.ts';
import type { HookResult, HookRun } from '../../src/hooks/rules.ts';
import type { HookRunner } from '../../src/hooks/runner.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import {
  type KubeList,
  type KubeObject,
  leases,
  nodes,
  type Resource,
} from '../../src/kube/resources.ts';
import { StatusError } from '../../src/kube/status-error.ts';
import { CENTRAL_CORDONING_LABEL, controlNodes } from '../../src/signal/names.ts';
import { knowledgeOf } from '../support/builders/knowledge.ts';
import { decisionsOn } from './people.ts';
import { isPresent } from './presence.ts';

/** Everything on which a decision depends. It does not matter which process decides. */
export interface LeaderView {
  /** The plan as it is in the leader's cache. */
  readonly plan: Plan;
  /** The plan as it is on the API server. */
  readonly current: Plan;
  /** Each object of `objects`, by its name, as it is on the API server. */
  readonly newest: ReadonlyMap<string, KubeObject>;
  readonly objects: Readonly<Record<Role, readonly KubeObject[]>>;
  /** Names of the controllers whose API server says that it is not ready. */
  readonly down: readonly string[];
  /** This process's knowledge of its drains, by name of the Node. */
  readonly drains: ReadonlyMap<string, DrainState['kind']>;
  /** What this process knows of the Jobs of hooks. */
  readonly hookResults: readonly HookResult[];
  /** True if the agents of the targets delegate cordon and drain to the leader. */
  readonly drainDelegation: boolean;
  readonly now: number;
  /** The milliseconds in which this process has observed no change. */
  readonly watchedMs: number;
  readonly policy: RolloutPolicy;
}

export interface Deeds {
  /** The objects that the leader sends to the API server in write requests. */
  readonly writes: readonly KubeObject[];
  /** Names of the Nodes that the leader begins to drain. */
  readonly begun: readonly string[];
  /** The runs of hooks whose Jobs the leader reads, or creates if there is no Job yet. */
  readonly hookRuns: readonly HookRun[];
}

export type Leader = (view: LeaderView) => Promise<Deeds>;

/**
 * Forgets a leader's own writes. A leader that remembers them only sees more, so the model explores all cases without
 * them.
 */
export class NoMemory extends OwnWrites {
  override remember(): void {
    // On purpose.
  }
}

/**
 * Returns a leader that starts as a new process at each call and does one reconciliation. What happens after its writes
 * is a separate decision on a later view. So every write to the plan fails with a conflict. Writes to other objects
 * seem to succeed, because one reconciliation may make several of them.
 */
export function leaderWith(dialect: Dialect<Plan>): Leader {
  return async (view) => {
    const deeds = { writes: [] as KubeObject[], begun: [] as string[], hookRuns: [] as HookRun[] };
    let elapsedMs = 0;
    let over = new AbortController();
    const reconcile = createReconciler({
      dialect,
      client: catchingClient(view, deeds.writes, () => over.abort()),
      plans: viewOf([view.plan]),
      ...knowledgeOf(viewsOfRoles(view.objects), new NoMemory()),
      policyFor: () => view.policy,
      drains: drainsIn(view, deeds),
      hooks: hooksIn(view, deeds),
      clock: { now: () => view.now, monotonic: () => elapsedMs, schedule: () => () => undefined },
      prober: {
        askControlPlane: async (endpoints) =>
          await Promise.resolve(
            endpoints.map(({ name }) => ({ name, ready: !view.down.includes(name) })),
          ),
      },
    });
    const look = async (): Promise<void> => {
      over = new AbortController();
      await reconcile(view.plan.metadata.name, { abort: over.signal }).catch((error: unknown) => {
        if (!over.signal.aborted) throw error;
      });
    };
    if (view.watchedMs > 0) {
      // In its first reconciliation the process has observed nothing yet. Its decisions are those of a process whose
      // `watchedMs` is 0, so they are not recorded.
      await look();
      for (const deed of Object.values(deeds)) deed.length = 0;
      elapsedMs = view.watchedMs;
    }
    await look();
    return deeds;
  };
}

/** Records which drains begin. The model determines their results and when they are forgotten. */
function drainsIn({ drains, now }: LeaderView, { begun }: { begun: string[] }): Drains {
  return {
    stateOf: (node) => {
      const kind = drains.get(node);
      if (kind === undefined) return undefined;
      return kind === 'draining' ? { kind, since: now, left: 1 } : { kind: 'drained', since: now };
    },
    begin: (node) => void begun.push(node),
    forget: async () => await Promise.resolve(),
    keep: () => undefined,
    onChange: () => () => undefined,
    run: async () => await Promise.resolve(),
  };
}

/** Records the runs of hooks. The model creates and reads the Jobs later. */
function hooksIn({ hookResults }: LeaderView, { hookRuns }: { hookRuns: HookRun[] }): HookRunner {
  return {
    follow: (_plan, due) => void hookRuns.push(...due),
    forget: () => undefined,
    resultsOf: () => hookResults,
    onChange: () => () => undefined,
    run: async () => await Promise.resolve(),
  };
}

export const realLeader = leaderWith(autopilot);

/**
 * Returns the objects of each role as objects of the kind that the dialect uses for the role. The other watched kinds
 * have no objects.
 */
export function viewsOfRoles({ controller, worker }: LeaderView['objects']): Views {
  const empty = autopilot.watched.map(({ resource }) => [resource, NOTHING] as const);
  return viewsOf([
    ...empty,
    [controlNodes, viewOf(controller.filter(isPresent))],
    [nodes, viewOf(worker.filter(isPresent))],
  ]);
}

function viewOf<T extends KubeObject>(objects: readonly T[]): View<T> {
  return {
    get: (name) => objects.find(({ metadata }) => metadata.name === name),
    list: () => [...objects],
    resourceVersion: () => undefined,
  };
}

function notFound(name: string): StatusError {
  return new StatusError({ kind: 'Status', code: 404, reason: 'NotFound', details: { name } });
}

/** A client with only the requests that a leader makes. Any other request is a TypeError. */
function catchingClient(
  { current, newest, drainDelegation }: LeaderView,
  writes: KubeObject[],
  endRound: () => void,
): KubeClient {
  const labels = drainDelegation ? { [CENTRAL_CORDONING_LABEL]: 'somebody' } : {};
  const client: Pick<KubeClient, 'get' | 'listAll' | 'raw' | 'replace'> = {
    // The server serves none of the kinds that a new version removes.
    raw: async () => await Promise.resolve({ status: 404, body: '' }),
    listAll: async <T extends KubeObject>() =>
      await Promise.resolve({ metadata: {}, items: [current as KubeObject as T] } as KubeList<T>),
    get: async <T extends KubeObject>({ plural }: Resource<T>, name: string) => {
      if (plural === nodeRollouts.plural) return await Promise.resolve(decisionsOn(current) as T);
      const lease: KubeObject = { metadata: { name, labels } };
      if (plural === leases.plural) return await Promise.resolve(lease as T);
      const found = plural === plans.plural ? current : newest.get(name);
      if (found !== undefined && !isPresent(found)) return await Promise.reject(notFound(name));
      return await Promise.resolve(found as T);
    },
    replace: async ({ plural }, object) => {
      writes.push(object);
      if (plural !== plans.plural) {
        endRound();
        return await Promise.resolve(object);
      }
      return await Promise.reject(
        new StatusError({ kind: 'Status', code: 409, reason: 'Conflict' }),
      );
    },
  };
  return client as KubeClient;
}
