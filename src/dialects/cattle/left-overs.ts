/** Finds cordons of the leader and held Jobs that no Plan wants any more, so that the leader can end them. */
import type { CattlePlan } from '../../api/cattle/plan.ts';
import { cordonOwner, readOwner } from '../../drain/cordon-marks.ts';
import type { OrphanedPlan, World } from '../../engine/dialect.ts';
import { because, type Reason } from '../../engine/model/reasons.ts';
import type { Target } from '../../engine/model/recorded.ts';
import { jobs, nodes } from '../../kube/resources.ts';
import type { Job } from '../../kube/types.ts';
import { onceForEach } from '../../util/memo.ts';
import { hostnameOf } from './job.ts';
import { CORDON_KIND, isHeld, markOf } from './leader-drain.ts';
import { hashLabelOf, NODE_LABEL } from './names.ts';
import { nodesAtWork } from './signal.ts';

type Orphaned = OrphanedPlan<CattlePlan>;

/** Of the controller of one namespace: each as a rollout that is over. `plans` still exist. */
export function leftOvers(namespace: string, world: World, plans: readonly CattlePlan[]): Orphaned[] {
  const alive = new Map(plans.map((plan) => [plan.metadata.uid ?? '', plan]));
  return [...cordonsLeft(namespace, world, alive), ...jobsLeft(world, alive)];
}

type Alive = ReadonlyMap<string, CattlePlan>;

function cordonsLeft(namespace: string, world: World, alive: Alive): Orphaned[] {
  return world.list(nodes).flatMap((node) => {
    const { kind, plan: owner = '', attempt: since = '' } = readOwner(cordonOwner(node) ?? '') ?? {};
    const [home, uid = ''] = owner.split('/');
    if (kind !== CORDON_KIND || home !== namespace) return [];
    const plan = alive.get(uid);
    const { name } = node.metadata;
    if (!plan) return orphaned({ name: 'deleted', namespace, uid }, '', { name, state: 'failed', since }, GONE);
    const isWanted = plan.status?.applying?.includes(hostnameOf(node)) === true || nodesAtWork(plan, world).has(name);
    return isWanted ? [] : orphaned(plan.metadata, '', { name, state: 'failed', since }, DROPPED);
  });
}

/** Jobs of a deleted Plan are deleted by Kubernetes. */
function jobsLeft(world: World, alive: Alive): Orphaned[] {
  return heldAmong(world.list(jobs)).flatMap(({ metadata }) => {
    const { labels = {}, ownerReferences = [], creationTimestamp: since = '' } = metadata;
    const plan = alive.get(ownerReferences[0]?.uid ?? '');
    const node = world.get(nodes, labels[NODE_LABEL] ?? '');
    if (!plan || !node) return [];
    const { latestHash, applying } = plan.status ?? {};
    const hash = labels[hashLabelOf(plan.metadata.name)] ?? '';
    if (hash === latestHash && applying?.includes(hostnameOf(node)) === true) return [];
    return orphaned(plan.metadata, hash, { name: node.metadata.name, state: 'intended', since }, DROPPED);
  });
}

const heldAmong = onceForEach((all: readonly Job[]) => all.filter(isHeld));

const GONE = because('PlanGone', 'its plan was deleted');
const DROPPED = because('PlanGone', 'its plan no longer selects it, or has another version');

function orphaned(
  metadata: CattlePlan['metadata'],
  id: string,
  target: Omit<Target, 'key'>,
  reason: Reason,
): [Orphaned] {
  const { name, uid = '' } = metadata;
  const source = { apiVersion: 'upgrade.cattle.io/v1', kind: 'Plan', name, uid, created: target.since };
  const targets = [{ key: target.name, ...target }];
  const stage = { id: 'nodes', command: 0, role: 'worker', maxInFlight: 1, version: '', forced: false } as const;
  const stages = [{ ...stage, targets }];
  const over = { phase: 'failed', blocked: false, reason, stages, problems: [] } as const;
  return [{ rollout: { source: { ...source, mark: markOf(metadata) }, id, ...over }, plan: { metadata } }];
}
