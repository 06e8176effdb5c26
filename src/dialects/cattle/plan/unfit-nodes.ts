/** Finds the nodes of a Plan on which no pod of its Jobs can run, although the nodes would be cordoned and drained first. */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { World } from '../../../engine/contract/world.ts';
import { type Node, nodes } from '../../../kube/resources.ts';
import { virtualBy } from '../../../kube/virtual-nodes.ts';
import { listed } from '../../../util/phrases.ts';
import { isInstaller } from './installed-version.ts';
import { isWindows } from './job.ts';
import { hashOn, selects } from './names.ts';

type Taint = NonNullable<NonNullable<Node['spec']>['taints']>[number];

interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
}

/** Kubernetes sets and removes taints with these keys by itself. Jobs tolerate the taint of a cordoned node. */
const PASSING = 'node.kubernetes.io/';
/** The most characters in the value of a label. Each Job has a label with the name of its node. */
const LONGEST_LABEL = 63;
const BLOCKING = new Set(['NoSchedule', 'NoExecute']);

/**
 * Returns a sentence for each taint that the Plan does not tolerate, for each node with a name that is too long, and for
 * Windows nodes that the image does not support.
 */
export function unfitNodes(plan: CattlePlan, world: World): string[] {
  const left = world.list(nodes).filter((node) => isLeft(node, plan));
  const { name, namespace = 'default' } = plan.metadata;
  const title = `Plan ${namespace}/${name}`;
  const tainted = left.flatMap((node) =>
    blockingTaints(node, plan).map((taint) => ({ taint, name: node.metadata.name })),
  );
  const byTaint = Map.groupBy(tainted, ({ taint }) => textOf(taint));
  const windows = isInstaller(plan.spec?.upgrade?.image ?? '') ? left.filter(isWindows) : [];
  const long = left.filter(({ metadata }) => metadata.name.length > LONGEST_LABEL);
  const names = listed(windows.map(({ metadata }) => metadata.name));
  return [
    ...[...byTaint].map(
      ([taint, found]) =>
        `${title} does not tolerate the taint ${taint} of ${listed(found.map((each) => each.name))}, so no pod of its Jobs can start there: add a toleration to spec.tolerations`,
    ),
    ...long.map(
      ({ metadata }) =>
        `${title} selects ${metadata.name}, whose name has ${metadata.name.length} characters; the API server refuses each Job for it, because a label of the Job has this name and at most ${LONGEST_LABEL} characters`,
    ),
    ...(windows.length === 0
      ? []
      : [
          `${title} selects ${names} with Windows, but its image has no release for Windows, so no pod of its Jobs can start there: add kubernetes.io/os: linux to spec.nodeSelector.matchLabels`,
        ]),
  ];
}

/** Returns true if the Plan selects the node and is not done with it. */
function isLeft(node: Node, plan: CattlePlan): boolean {
  const { latestHash } = plan.status ?? {};
  const isDone = latestHash !== undefined && hashOn(node, plan) === latestHash;
  return !isDone && selects(plan, node) && virtualBy(node) === undefined;
}

function blockingTaints({ spec }: Node, plan: CattlePlan): readonly Taint[] {
  const tolerations = (plan.spec?.tolerations ?? []) as readonly Toleration[];
  return (spec?.taints ?? []).filter(
    (taint) =>
      BLOCKING.has(taint.effect) &&
      !taint.key.startsWith(PASSING) &&
      !tolerations.some((toleration) => tolerates(toleration, taint)),
  );
}

/** Returns true if a pod with the toleration may run on a node with the taint, as the scheduler decides. */
function tolerates(toleration: Toleration, taint: Taint): boolean {
  const { key = '', operator = '', value = '', effect = '' } = toleration;
  if (effect !== '' && effect !== taint.effect) return false;
  if (key === '') return operator === 'Exists';
  return key === taint.key && (operator === 'Exists' || value === (taint.value ?? ''));
}

function textOf({ key, value = '', effect }: Taint): string {
  return `${key}${value === '' ? '' : `=${value}`}:${effect}`;
}
