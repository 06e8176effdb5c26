/** Finds cordons of the leader, and Jobs, that no Plan needs any more, so that the leader can end them. */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import { cordonOwner, readOwner } from '../../../drain/cordon-marks.ts';
import type { OrphanedPlan } from '../../../engine/contract/features.ts';
import type { World } from '../../../engine/contract/world.ts';
import { sourceOf, type Target } from '../../../engine/model/rollout.ts';
import { type Job, jobs, type Node, nodes } from '../../../kube/resources.ts';
import { onceForEach } from '../../../util/memo.ts';
import { ownMember } from '../../../util/own-member.ts';
import { orphanedRollout } from '../../shared/orphaned-rollout.ts';
import { hostnameOf } from './job.ts';
import { CORDON_KIND, isHeld, markOf } from './leader-drain.ts';
import { hashLabelOf, NODE_LABEL } from './names.ts';
import { isUnfinished, nodesAtWork } from './plan-jobs.ts';

type Orphaned = OrphanedPlan<CattlePlan>;

/**
 * Returns the orphaned work in one namespace, each as a rollout that is over. `plans` are the Plans that still exist.
 */
export function orphanedPlans(
  namespace: string,
  world: World,
  plans: readonly CattlePlan[],
): Orphaned[] {
  const alive = new Map(plans.map((plan) => [plan.metadata.uid ?? '', plan]));
  return [...cordonsLeft(namespace, world, alive), ...jobsLeft(world, alive)];
}

type Alive = ReadonlyMap<string, CattlePlan>;

function cordonsLeft(namespace: string, world: World, alive: Alive): Orphaned[] {
  return cordonedAmong(world.list(nodes)).flatMap((node) => {
    const {
      kind,
      plan: owner = '',
      attempt: since = '',
    } = readOwner(cordonOwner(node) ?? '') ?? {};
    const [home, uid = ''] = owner.split('/');
    if (kind !== CORDON_KIND || home !== namespace) return [];
    const plan = alive.get(uid);
    const target = { name: node.metadata.name, state: 'failed', since } as const;
    if (!plan)
      return orphaned(
        { metadata: { name: 'deleted', namespace, uid } },
        '',
        target,
        'its plan was deleted',
      );
    const isApplying = plan.status?.applying?.includes(hostnameOf(node)) === true;
    const isWanted = isApplying || nodesAtWork(plan, world).has(node.metadata.name);
    return isWanted ? [] : orphaned(plan, '', target, DROPPED);
  });
}

/** Finds orphaned Jobs of existing Plans only, because Kubernetes deletes the Jobs of a deleted Plan. */
function jobsLeft(world: World, alive: Alive): Orphaned[] {
  return openAmong(world.list(jobs)).flatMap((job) => {
    const { labels = {}, ownerReferences = [], creationTimestamp: since = '' } = job.metadata;
    const plan = alive.get(ownerReferences[0]?.uid ?? '');
    const name = labels[NODE_LABEL] ?? '';
    const node = world.get(nodes, name);
    if (!plan || (node && !isHeld(job))) return [];
    const { latestHash, applying } = plan.status ?? {};
    const hash = ownMember(labels, hashLabelOf(plan.metadata.name)) ?? '';
    if (node && hash === latestHash && applying?.includes(hostnameOf(node)) === true) return [];
    return orphaned(
      plan,
      hash,
      { name, state: 'intended', since },
      node ? DROPPED : 'its node was deleted',
    );
  });
}

const openAmong = onceForEach((all: readonly Job[]) =>
  all.filter((job) => isHeld(job) || isUnfinished(job)),
);

const cordonedAmong = onceForEach((all: readonly Node[]) =>
  all.filter((node) => cordonOwner(node) !== undefined),
);

const DROPPED = 'its plan no longer selects it, or has another version';

function orphaned(
  { metadata }: CattlePlan,
  id: string,
  target: Omit<Target, 'key'>,
  why: string,
): [Orphaned] {
  const { name, since } = target;
  const mark = { ...markOf(metadata), attempt: since };
  const source = { ...sourceOf(cattlePlans, { metadata }), created: since, mark };
  return [
    { rollout: orphanedRollout(source, id, { key: name, ...target }, why), plan: { metadata } },
  ];
}
