/** Owns what a node is given once it is done: the labels of its Plan, and pods again. */
import type { CattlePlan } from '../../api/cattle/plan.ts';
import type { Rollout, Stage } from '../../engine/model/recorded.ts';
import type { Node } from '../../kube/types.ts';
import { hashLabelOf } from './names.ts';

/** By the plan's own doing, which is to be undone. */
export function isTakenOut(node: Node | undefined, { spec }: CattlePlan): boolean {
  return node?.spec?.unschedulable === true && (spec?.cordon === true || spec?.drain !== undefined);
}

export function schedulable({ spec, ...rest }: Node): Node {
  const { unschedulable: _, ...kept } = spec ?? {};
  return { ...rest, spec: kept };
}

/** Labelled with the hash of its Job, last, and schedulable again where the plan took it out. */
export function finished(
  node: Node,
  plan: CattlePlan,
  { id }: Pick<Rollout, 'id'>,
  { version }: Pick<Stage, 'version'>,
): Node {
  const { metadata, spec } = plan;
  const labels = {
    ...node.metadata.labels,
    ...Object.fromEntries(
      Object.entries(spec?.postCompleteLabels ?? {}).map(([key, value]) => [key, expanded(value, version, id)]),
    ),
    [hashLabelOf(metadata.name)]: id,
  };
  const labelled = { ...node, metadata: { ...node.metadata, labels } };
  return isTakenOut(node, plan) ? schedulable(labelled) : labelled;
}

/** As kubelets expand: `$$` is a `$`, and what is not known stays as it is written. */
function expanded(text: string, version: string, hash: string): string {
  const known: Readonly<Record<string, string>> = { $$: '$', '$(LATEST_VERSION)': version, '$(LATEST_HASH)': hash };
  return text.replaceAll(/\$\$|\$\([^)]*\)/g, (found) => known[found] ?? found);
}
