/** Tells a cordon that a Job made from one that was there before: only the former ends with the upgrade. */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { UnnamedCordon } from '../../../engine/model/decision.ts';
import type { Target } from '../../../engine/model/rollout.ts';
import { annotated, type Job, type Node, withoutAnnotations } from '../../../kube/resources.ts';
import { ownMember } from '../../../util/own-member.ts';
import { recordedFailures } from './attempts.ts';
import { hostnameOf } from './job.ts';
import { cordons, isCordonOf } from './leader-drain.ts';
import { cordonMarkOf, HELD_ANNOTATION, hashOn } from './names.ts';

/** Somebody else had cordoned the node before the first Job of the plan. */
const FOUND = 'found';
/** A Job of the plan cordoned it, and failed: that of the hash which follows. */
const OURS = 'ours';

/** Before it is recorded that the target starts or has failed; `last`: its Job. The same node if nothing changes. */
export function withCordonMark(
  node: Node,
  plan: CattlePlan,
  { state }: Target,
  last: Job | undefined,
): Node {
  const isMarked = markOn(node, plan) === FOUND || isOurs(node, plan);
  if (node.spec?.unschedulable !== true)
    return state === 'intended' ? withoutCordonMark(node, plan) : node;
  // A cordon by the leader names its owner, and ends with it.
  if (isMarked || isCordonOf(node, plan) || !(cordons(plan) || (last && cordonsIn(last))))
    return node;
  const isTried = (state === 'failed' || wasTried(node, plan, last)) && (!last || cordonsIn(last));
  const hash = (last && hashOn(last, plan)) ?? plan.status?.latestHash ?? '';
  return annotated(node, {
    [cordonMarkOf(plan.metadata.name)]: isTried ? `${OURS} ${hash}` : FOUND,
  });
}

export function withoutCordonMark(node: Node, plan: CattlePlan): Node {
  return markOn(node, plan) === undefined
    ? node
    : withoutAnnotations(node, cordonMarkOf(plan.metadata.name));
}

/** True if one of these Jobs of the plan made the node unschedulable. Without a mark it did: the original leaves none. */
export function isCordonedBy(
  node: Node | undefined,
  plan: CattlePlan,
  all: readonly Job[],
): boolean {
  if (node?.spec?.unschedulable !== true || markOn(node, plan) === FOUND) return false;
  // The Plan may say something else by now.
  return isOurs(node, plan) || (all.length === 0 ? cordons(plan) : all.some(cordonsIn));
}

/** Of a target that is done nothing is known: the mark of its Node is gone by then. `all`: the Jobs of the plan on the node, the last first. */
export function unnamedCordonOn(
  node: Node | undefined,
  plan: CattlePlan,
  target: Target,
  all: readonly Job[],
): UnnamedCordon | undefined {
  if (node === undefined || target.state === 'done') return undefined;
  // As it is marked when it starts.
  const marked =
    target.state === 'pending'
      ? withCordonMark(node, plan, { ...target, state: 'intended' }, all[0])
      : node;
  return isCordonedBy(marked, plan, all) ? 'ours' : 'found';
}

/** True while a failed Job of the plan may have left it: one of the version that the label says is done. */
function isOurs(node: Node, plan: CattlePlan): boolean {
  const [mark, hash] = markOn(node, plan)?.split(' ') ?? [];
  return mark === OURS && hash !== hashOn(node, plan);
}

/** True if it cordons its node, or waited until the leader did. */
export function cordonsIn({ metadata, spec }: Job): boolean {
  const { initContainers = [] } = (spec?.['template'] as typeof CORDONS | undefined)?.spec ?? {};
  const isHere = initContainers.some(({ name }) => name === 'cordon' || name === 'drain');
  return isHere || metadata.annotations?.[HELD_ANNOTATION] !== undefined;
}

/** What is left of the template of a Job that does, where only that counts. */
export const CORDONS = { spec: { initContainers: [{ name: 'cordon' }] } };

function markOn({ metadata }: Node, plan: CattlePlan): string | undefined {
  return ownMember(metadata.annotations, cordonMarkOf(plan.metadata.name));
}

/** A Job may have cordoned it: of the original, one that failed, or one whose end was not recorded. */
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
