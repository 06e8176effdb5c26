/** Runs the real reconciler once for a plan with status shards, on a chosen view, and records its requests. */

import { type Plan, plans } from '../../../src/api/autopilot/plan.ts';
import { statusShards } from '../../../src/api/refit/status-shard.ts';
import { autopilot } from '../../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import { shardsOfSizes } from '../../../src/dialects/autopilot/plan/status-shards/spread.ts';
import type { Dialect } from '../../../src/engine/contract/dialect.ts';
import { createReconciler } from '../../../src/engine/loop.ts';
import { DEFAULT_POLICY } from '../../../src/engine/policy/rollout-policy.ts';
import { type View, viewsOf } from '../../../src/engine/snapshot/world.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { type KubeObject, nodes } from '../../../src/kube/resources.ts';
import { StatusError } from '../../../src/kube/status-error.ts';
import { controlNodes } from '../../../src/signal/names.ts';
import { sameJson } from '../../../src/util/json.ts';
import { knowledgeOf } from '../../support/builders/knowledge.ts';
import { NOW } from '../cluster.ts';
import { NoMemory } from '../leader.ts';

/** Objects by kind and name, such as `nodes/w1`. */
export type Objects = ReadonlyMap<string, KubeObject>;

export interface ShardView {
  /** The objects as they are in the caches. */
  readonly seen: Objects;
  /** The objects as they are on the API server. */
  readonly current: Objects;
}

export interface Request {
  readonly key: string;
  /** The part of the object that is written: the status or the rest if the object has a status, otherwise all of it. */
  readonly part: 'all' | 'status' | 'rest';
  readonly object: KubeObject;
}

/** One round of a leader. The leader sends the requests in `first` at once, then the requests in `next` one by one. */
export interface Round<R = Request> {
  readonly first: readonly R[];
  readonly next: readonly R[];
}

export type ShardLeader = (view: ShardView) => Promise<Round>;

/** A status shard holds at most two targets. The limit of the plan is so low that every plan needs status shards. */
export const SMALL_SHARDS = shardsOfSizes({ plan: 1, shard: 2, failures: 1 });

/**
 * Returns a leader that starts as a new process at each call and does one round. What happens after its writes is a
 * separate decision on a later view.
 */
export function shardLeaderWith(dialect: Dialect<Plan>): ShardLeader {
  return async ({ seen, current }) => {
    const round = { first: [] as Request[], next: [] as Request[] };
    const over = new AbortController();
    const reconcile = createReconciler({
      dialect,
      client: catching(current, round, () => over.abort()),
      plans: viewOf<Plan>(seen, plans.plural),
      ...knowledgeOf(
        viewsOf(
          [controlNodes, nodes, statusShards].map((kind) => [kind, viewOf(seen, kind.plural)]),
        ),
        new NoMemory(),
      ),
      policyFor: () => ({ ...DEFAULT_POLICY, targetDeadlineMs: Infinity }),
      clock: { now: () => NOW, monotonic: () => 0, schedule: () => () => undefined },
      prober: { askControlPlane: async () => await Promise.resolve([]) },
    });
    await reconcile('autopilot', { abort: over.signal }).catch((error: unknown) => {
      if (!over.signal.aborted) throw error;
    });
    return round;
  };
}

export const realShardLeader = shardLeaderWith({
  ...autopilot,
  sharding: SMALL_SHARDS,
});

/**
 * Records the writes. All writes seem to succeed, except the write of the plan's status. The round ends with the write
 * of the plan's status, or with a write to an object other than the plan.
 */
function catching(
  current: Objects,
  { first, next }: { first: Request[]; next: Request[] },
  endRound: () => void,
): KubeClient {
  const refusal = (code: number, reason: string): StatusError =>
    new StatusError({ kind: 'Status', code, reason });
  const client: Pick<KubeClient, 'get' | 'create' | 'replace' | 'raw'> = {
    raw: async () => await Promise.resolve({ status: 404, body: '' }),
    get: async <T extends KubeObject>({ plural }: { plural: string }, name: string) => {
      const found = current.get(`${plural}/${name}`);
      return found
        ? await Promise.resolve(found as T)
        : await Promise.reject(refusal(404, 'NotFound'));
    },
    create: async ({ plural }, object) => {
      first.push({ key: `${plural}/${object.metadata.name}`, part: 'all', object });
      return await Promise.resolve(object);
    },
    replace: async ({ plural }, object, { subresource } = {}) => {
      const key = `${plural}/${object.metadata.name}`;
      if (plural !== plans.plural) {
        first.push({ key, part: 'all', object });
        endRound();
        return await Promise.resolve(object);
      }
      if (subresource !== undefined) {
        next.push({ key, part: 'status', object });
        return await Promise.reject(refusal(409, 'Conflict'));
      }
      const { status: _, ...rest } = (current.get(key) ?? {}) as Partial<Plan>;
      // A write that changes nothing creates no new version.
      if (sameJson(rest, object)) return await Promise.resolve(object);
      next.push({ key, part: 'rest', object });
      const resourceVersion = String(Number(object.metadata.resourceVersion) + 1);
      return await Promise.resolve({
        ...object,
        metadata: { ...object.metadata, resourceVersion },
      });
    },
  };
  return client as KubeClient;
}

function viewOf<T extends KubeObject>(objects: Objects, plural: string): View<T> {
  const own = [...objects].flatMap(([key, object]) =>
    key.startsWith(`${plural}/`) ? [object as T] : [],
  );
  return {
    get: (name) => own.find(({ metadata }) => metadata.name === name),
    list: () => own,
    resourceVersion: () => undefined,
  };
}
