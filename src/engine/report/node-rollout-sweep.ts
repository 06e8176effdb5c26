/** Finds NodeRollouts whose plan was deleted while no leader watched, and deletes the NodeRollouts that are too old. */
import { nodeRollouts } from '../../api/kinds.ts';
import type { NodeRollout } from '../../api/refit/node-rollout.ts';
import type { KubeClient } from '../../kube/client.ts';
import { type KubeObject, keyOf } from '../../kube/resources.ts';
import { ifFound } from '../../kube/status-error.ts';
import { type Clock, DAY_MS } from '../../util/clock.ts';
import type { Dialect } from '../contract/dialect.ts';
import { placeOf } from '../contract/node-rollout-place.ts';
import { plansAmong } from '../contract/plan-objects.ts';
import { DIALECT_LABEL, patchOf } from './node-rollout-object.ts';
import { statusOfDeleted } from './node-rollout-status.ts';

/** Milliseconds for which the NodeRollout of a deleted plan is kept. */
export const KEPT_MS = 30 * DAY_MS;
/** The maximum number of NodeRollouts of deleted plans in one namespace. */
export const MOST_KEPT = 100;

export interface SweepParts {
  readonly dialect: Dialect;
  /** The client of the cluster that has the NodeRollouts. It writes only while this process leads. */
  readonly client: KubeClient;
  /** Returns the plans that exist. */
  readonly plans: () => readonly KubeObject[];
  /**
   * True if other processes have plans of this dialect whose NodeRollouts are in the same cluster. Then a NodeRollout
   * with an unknown plan is not treated as the NodeRollout of a deleted plan.
   */
  readonly isShared?: boolean | undefined;
  readonly clock: Clock;
}

export async function sweep({
  dialect,
  client,
  plans,
  isShared,
  clock,
}: SweepParts): Promise<void> {
  const namespace = dialect.nodeRollouts?.namespace ?? dialect.planObjects?.namespace;
  const labelSelector = `${DIALECT_LABEL}=${dialect.name}`;
  const { items } = await client.listAll(nodeRollouts, { namespace, labelSelector });
  const places = plansAmong(dialect, plans()).flatMap((plan) => placeOf(dialect, plan) ?? []);
  const existing = new Set(places.map((place) => keyOf({ metadata: place })));
  const left = items.filter((item) => !existing.has(keyOf(item)));
  const now = clock.now();
  for (const item of isShared === true ? [] : left) {
    const status = statusOfDeleted(item, now);
    if (status === item.status) continue;
    const patch = { status: patchOf(status, item.status) };
    const { name, namespace: own } = item.metadata;
    const options = { type: 'merge', subresource: 'status', namespace: own } as const;
    await ifFound(client.patch(nodeRollouts, name, patch, options));
  }
  for (const { metadata } of tooOld(left, now, isShared === true)) {
    const { name, namespace: own, uid } = metadata;
    await ifFound(client.delete(nodeRollouts, name, { namespace: own, uid }));
  }
}

/**
 * Returns the NodeRollouts that must be deleted. With `isShared`, their age is counted from the end of the last run,
 * because in this case no process records that a plan was deleted.
 */
export function tooOld(
  left: readonly NodeRollout[],
  now: number,
  isShared: boolean,
): readonly NodeRollout[] {
  const since = ({ status }: NodeRollout): number => {
    const ended = isShared ? status?.history?.[0]?.ended : undefined;
    const time = Date.parse(status?.planDeleted ?? ended ?? '');
    // A NodeRollout without such a time is not old: it was marked just now, or its plan may still exist.
    return Number.isNaN(time) ? Number.POSITIVE_INFINITY : time;
  };
  const old = left.filter((item) => now - since(item) >= KEPT_MS);
  const kept = left.filter((item) => !old.includes(item) && Number.isFinite(since(item)));
  const byNamespace = Map.groupBy(kept, ({ metadata }) => metadata.namespace);
  const surplus = [...byNamespace.values()].flatMap((items) =>
    items.toSorted((a, b) => since(b) - since(a)).slice(MOST_KEPT),
  );
  return [...old, ...surplus];
}
