/** Tells which Jobs on a node its label covers: one of another version, and one that came later, may have changed it since. */
import type { CattlePlan } from '../../api/cattle/plan.ts';
import { annotated, type Job, type Node } from '../../kube/resources.ts';
import { doneMarkOf, hashLabelOf } from './names.ts';

/** Of `all` Jobs of the plan on the node, those whose end its label does not tell. */
export function openJobs(node: Node, plan: CattlePlan, all: readonly Job[]): readonly Job[] {
  const until = doneUntil(node, plan);
  return all.filter((job) => (until === undefined ? hashOn(job, plan) !== hashOn(node, plan) : createdAt(job) > until));
}

/** Undefined for a label that the original wrote, or a person: that counts as it is. */
export function doneUntil(node: Node, plan: CattlePlan): string | undefined {
  const [hash, until] = node.metadata.annotations?.[doneMarkOf(plan.metadata.name)]?.split(' ') ?? [];
  return hash === hashOn(node, plan) ? until : undefined;
}

/** To be written with the label. */
export function withDoneMark(node: Node, plan: CattlePlan, all: readonly Job[]): Node {
  const until = all.map(createdAt).reduce((a, b) => (a > b ? a : b), '');
  return annotated(node, { [doneMarkOf(plan.metadata.name)]: `${hashOn(node, plan)} ${until}` });
}

export function hashOn({ metadata }: Job | Node, plan: CattlePlan): string | undefined {
  return metadata.labels?.[hashLabelOf(plan.metadata.name)];
}

export const createdAt = ({ metadata }: Job): string => metadata.creationTimestamp ?? '';
