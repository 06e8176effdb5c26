/**
 * Finds what prevents a plan from starting its Job on a node: work of another plan, or a Node with the same host name.
 */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cordonOwner, readOwner } from '../../../drain/cordon-marks.ts';
import type { World } from '../../../engine/contract/world.ts';
import type { Obstacle } from '../../../engine/model/facts.ts';
import type { Target } from '../../../engine/model/rollout.ts';
import { type Job, type Node, nodes } from '../../../kube/resources.ts';
import { otherClaimantOn, signallerOf } from '../../../signal/at-work.ts';
import { onceForEach } from '../../../util/memo.ts';
import { listed } from '../../../util/phrases.ts';
import { isCordonOf, isHeld } from './leader-drain.ts';
import * as names from './names.ts';
import { isOf, isUnfinished, jobsAt } from './plan-jobs.ts';

/**
 * Returns an obstacle if another Node has the same host name label; otherwise undefined. Jobs are placed by that label, so a Job
 * for one Node could run on the other.
 */
export function twinOf(
  world: World,
  { name, state }: Pick<Target, 'name' | 'state'>,
): Obstacle | undefined {
  const host = world.get(nodes, name)?.metadata.labels?.[names.HOSTNAME_LABEL];
  const twins =
    (host !== undefined && state !== 'done' && nodesByHost(world.list(nodes)).get(host)) || [];
  if (twins.length < 2) return undefined;
  const all = listed(twins.map(({ metadata }) => metadata.name));
  const message = `the Nodes ${all} have the same label ${names.HOSTNAME_LABEL}=${host}`;
  return { message, ends: 'each Node has its own value of the label' };
}

const nodesByHost = onceForEach((all: readonly Node[]) =>
  Map.groupBy(all, ({ metadata }) => metadata.labels?.[names.HOSTNAME_LABEL]),
);

/**
 * Returns the obstacle that prevents the start of the target: a Node with the same host name label, another Plan of any
 * namespace, or a plan of another dialect. Returns undefined if there is no obstacle.
 */
export function occupantOf(
  world: World,
  target: Target,
  plan: CattlePlan,
): string | Obstacle | undefined {
  const { name, state } = target;
  const twin = twinOf(world, target);
  if (state === 'done' || twin) return twin;
  const atWork = jobsAt(world, name).filter((job) => isUnfinished(job) || isHeld(job));
  const other = atWork.find((job) => isOfSomePlan(job) && !isOf(job, plan));
  if (other) return `Plan ${other.metadata.namespace}/${other.metadata.labels?.[names.PLAN_LABEL]}`;
  const node = world.get(nodes, name);
  if (!node) return undefined;
  const claimant = otherClaimantOn(node, plan);
  if (claimant !== undefined) return claimant;
  const signaller = signallerOf(node);
  if (signaller !== undefined) return `plan ${signaller}, which signalled it,`;
  const owner = cordonOwner(node);
  const isForeign =
    node.spec?.unschedulable === true && owner !== undefined && !isCordonOf(node, plan);
  return isForeign ? `plan ${readOwner(owner)?.plan}, which cordoned it,` : undefined;
}

/**
 * Returns true if a Plan owns the Job. If that Plan does not exist in the same namespace, Kubernetes deletes the Job.
 * So a person who only creates Jobs cannot block a node for long.
 */
export function isOfSomePlan({ metadata }: Job): boolean {
  return (metadata.ownerReferences ?? []).some(
    ({ kind, apiVersion }) => kind === 'Plan' && apiVersion.startsWith('upgrade.cattle.io/'),
  );
}
