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

/** All that one decision depends on: which process decides makes no difference. */
export interface LeaderView {
  /** As its cache shows it. */
  readonly plan: Plan;
  /** As the API server has it. */
  readonly current: Plan;
  /** Of each object of `objects`, by its name: as the API server has it. */
  readonly newest: ReadonlyMap<string, KubeObject>;
  readonly objects: Readonly<Record<Role, readonly KubeObject[]>>;
  /** Names of the controllers whose API server says that it is not ready. */
  readonly down: readonly string[];
  /** By name of the Node: what this process knows of its drains. */
  readonly drains: ReadonlyMap<string, DrainState['kind']>;
  /** What this process knows of the Jobs of hooks. */
  readonly hookResults: readonly HookResult[];
  /** True where targets leave cordon and drain to the leader. */
  readonly drainDelegation: boolean;
  readonly now: number;
  /** Milliseconds for which it has watched that nothing changes. */
  readonly watchedMs: number;
  readonly policy: RolloutPolicy;
}

export interface Deeds {
  /** The objects that it asks the API server to write, as it sends them. */
  readonly writes: readonly KubeObject[];
  /** Names of the Nodes whose drain it begins. */
  readonly begun: readonly string[];
  /** The runs of hooks whose Jobs it looks at, and creates where there is none. */
  readonly hookRuns: readonly HookRun[];
}

export type Leader = (view: LeaderView) => Promise<Deeds>;

/** What a leader remembers of its own writes only ever makes it see more. */
export class NoMemory extends OwnWrites {
  override remember(): void {
    // On purpose.
  }
}

/**
 * A fresh process each time, for one round: what would follow its writes is decided anew, on whatever is seen then. So
 * every record is refused as a conflict; objects seem to be written, since several may be in one round.
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
      // What it does in its first round is what one does that has watched nothing yet.
      await look();
      for (const deed of Object.values(deeds)) deed.length = 0;
      elapsedMs = view.watchedMs;
    }
    await look();
    return deeds;
  };
}

/** Drains that are only begun: what comes of them, and when they are forgotten, is for the model to say. */
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

/** Jobs are created and looked at later, by the model. */
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

/** Each role's objects under the kind that the dialect gives it. The other kinds that it watches have no objects. */
export function viewsOfRoles({ controller, worker }: LeaderView['objects']): Views {
  const empty = autopilot.watched.map(({ resource }) => [resource, NOTHING] as const);
  return viewsOf([...empty, [controlNodes, viewOf(controller)], [nodes, viewOf(worker)]]);
}

function viewOf<T extends KubeObject>(objects: readonly T[]): View<T> {
  return {
    get: (name) => objects.find(({ metadata }) => metadata.name === name),
    list: () => [...objects],
    resourceVersion: () => undefined,
  };
}

/** What a leader asks of the API server; anything else is a TypeError. */
function catchingClient(
  { current, newest, drainDelegation }: LeaderView,
  writes: KubeObject[],
  endRound: () => void,
): KubeClient {
  const labels = drainDelegation ? { [CENTRAL_CORDONING_LABEL]: 'somebody' } : {};
  const client: Pick<KubeClient, 'get' | 'listAll' | 'raw' | 'replace'> = {
    // No kind that a new version removes is served.
    raw: async () => await Promise.resolve({ status: 404, body: '' }),
    listAll: async <T extends KubeObject>() =>
      await Promise.resolve({ metadata: {}, items: [current as KubeObject as T] } as KubeList<T>),
    get: async <T extends KubeObject>({ plural }: Resource<T>, name: string) => {
      if (plural === nodeRollouts.plural) return await Promise.resolve(decisionsOn(current) as T);
      const lease: KubeObject = { metadata: { name, labels } };
      if (plural === leases.plural) return await Promise.resolve(lease as T);
      const found = plural === plans.plural ? current : newest.get(name);
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
