/**
 * Distinguishes a cordon by a Job of the plan from a cordon that existed before the Job. When the upgrade ends, only a
 * cordon by a Job is removed.
 */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { UnnamedCordon } from '../../../engine/model/facts.ts';
import type { Target } from '../../../engine/model/rollout.ts';
import { annotated, type Job, type Node, withoutAnnotations } from '../../../kube/resources.ts';
import { ownMember } from '../../../util/own-member.ts';
import { recordedFailures } from './attempts.ts';
import { hostnameOf } from './job.ts';
import { cordons, isCordonOf } from './leader-drain.ts';
import { cordonMarkOf, HELD_ANNOTATION, hashOn } from './names.ts';

/** The mark of a node whose cordon is not that of a Job: it is older than the first Job, or newer than the last one. */
const FOUND = 'found';
/** The first word of the mark of a node that a failed Job of the plan cordoned. The second word is the hash of that Job. */
const OURS = 'ours';

/**
 * Returns the node with a mark that records who cordoned it. Returns the same node if its mark does not change. The
 * mark must be written before the start or the failure of the target is recorded. `last` is the newest Job of the
 * target.
 */
export function withCordonMark(
  node: Node,
  plan: CattlePlan,
  { state }: Target,
  last: Job | undefined,
): Node {
  const isMarked = markOn(node, plan) === FOUND || isOurs(node, plan);
  if (node.spec?.unschedulable !== true)
    return state === 'intended' ? withoutCordonMark(node, plan) : node;
  // A cordon by the leader needs no mark, because it names its owner.
  if (isMarked || isCordonOf(node, plan) || !(cordons(plan) || (last && cordonsIn(last))))
    return node;
  const isTried =
    (state === 'failed' || wasTried(node, plan, last)) && (!last || cordonsItself(last));
  const hash = (last && hashOn(last, plan)) ?? plan.status?.latestHash ?? '';
  return annotated(node, {
    [cordonMarkOf(plan.metadata.name)]: isTried ? `${OURS} ${hash}` : FOUND,
  });
}

/**
 * Returns the node with a mark that somebody else cordoned it, if the cordon names no owner. Call it only for a node that
 * no Job of the plan can have cordoned, because the leader cordons the nodes of the plan and names itself.
 */
export function withUnnamedCordonMark(node: Node, plan: CattlePlan): Node {
  if (node.spec?.unschedulable !== true) return withoutCordonMark(node, plan);
  const isKnown = markOn(node, plan) === FOUND || isOurs(node, plan) || isCordonOf(node, plan);
  return isKnown ? node : withForeignCordonMark(node, plan);
}

/**
 * Returns the node with the mark that the Jobs of the plan are over, so that the next cordon is somebody else's. The
 * node is written before its upgrade is verified, and somebody may cordon it meanwhile.
 */
export function withForeignCordonMark(node: Node, { metadata }: CattlePlan): Node {
  return annotated(node, { [cordonMarkOf(metadata.name)]: FOUND });
}

/**
 * Returns the node with a mark that says whether its cordon is that of the Job with this hash, because Kubernetes may
 * delete the Job before the node is uncordoned. Returns the same node if it is not cordoned, or if the leader cordoned it.
 */
export function withJobCordonMark(
  node: Node,
  plan: CattlePlan,
  hash: string,
  all: readonly Job[],
): Node {
  if (node.spec?.unschedulable !== true || isCordonOf(node, plan)) return node;
  if (!isCordonedBy(node, plan, all)) return withForeignCordonMark(node, plan);
  return annotated(node, { [cordonMarkOf(plan.metadata.name)]: `${OURS} ${hash}` });
}

export function withoutCordonMark(node: Node, plan: CattlePlan): Node {
  return markOn(node, plan) === undefined
    ? node
    : withoutAnnotations(node, cordonMarkOf(plan.metadata.name));
}

/**
 * Returns true if one of these Jobs of the plan made the node unschedulable. A cordon without a
 * mark counts as a cordon by a Job, because the original writes no marks.
 */
export function isCordonedBy(
  node: Node | undefined,
  plan: CattlePlan,
  all: readonly Job[],
): boolean {
  if (node?.spec?.unschedulable !== true || markOn(node, plan) === FOUND) return false;
  if (isOurs(node, plan)) return true;
  // The Jobs are checked first. The Plan may have been edited after the Jobs were created, so it is checked only if
  // there are no Jobs.
  if (all.length === 0) return cordons(plan);
  // A cordon by the leader names its owner. So an unnamed cordon on the node of a held Job is that of a person, who set
  // it before the leader could.
  return all.some(isCordonOf(node, plan) ? cordonsIn : cordonsItself);
}

/**
 * Returns the owner of the cordon on the node. `all` are the Jobs of the plan on the node, the newest first. Returns
 * undefined for a target that is done, because the mark of its Node was removed.
 */
export function unnamedCordonOn(
  node: Node | undefined,
  plan: CattlePlan,
  target: Target,
  all: readonly Job[],
): UnnamedCordon | undefined {
  if (node === undefined || target.state === 'done') return undefined;
  // For a pending target, the function uses the mark that the node will get when the target starts.
  const marked =
    target.state === 'pending'
      ? withCordonMark(node, plan, { ...target, state: 'intended' }, all[0])
      : node;
  return isCordonedBy(marked, plan, all) ? 'ours' : 'found';
}

/**
 * Returns true if the mark names a failed Job of the plan. If the mark has the same hash as the hash label, the mark is
 * outdated, because a later Job has completed the upgrade to that version.
 */
function isOurs(node: Node, plan: CattlePlan): boolean {
  const [mark, hash] = markOn(node, plan)?.split(' ') ?? [];
  return mark === OURS && hash !== hashOn(node, plan);
}

/** Returns true if the Job cordons its node, or if the Job waited until the leader had cordoned the node. */
export function cordonsIn(job: Job): boolean {
  return cordonsItself(job) || job.metadata.annotations?.[HELD_ANNOTATION] !== undefined;
}

/** Returns true if a container of the Job cordons its node. */
export function cordonsItself({ spec }: Job): boolean {
  const { initContainers = [] } = (spec?.['template'] as typeof CORDONS | undefined)?.spec ?? {};
  return initContainers.some(({ name }) => name === 'cordon' || name === 'drain');
}

/** The short template with which the cache replaces the template of a Job that cordons, to save memory. */
export const CORDONS = { spec: { initContainers: [{ name: 'cordon' }] } };

function markOn({ metadata }: Node, plan: CattlePlan): string | undefined {
  return ownMember(metadata.annotations, cordonMarkOf(plan.metadata.name));
}

/**
 * Returns true if an earlier Job may have cordoned the node: a Job with another hash than the hash
 * label, a failed Job, or a Job whose end was not recorded.
 */
function wasTried({ metadata }: Node, plan: CattlePlan, last: Job | undefined): boolean {
  const done = hashOn({ metadata }, plan);
  const { applying, latestHash } = plan.status ?? {};
  if (last && hashOn(last, plan) !== done) return true;
  const failure = recordedFailures(plan).nodes.get(metadata.name);
  return (
    failure?.state === 'failed' ||
    (latestHash !== done && applying?.includes(hostnameOf({ metadata })) === true)
  );
}
