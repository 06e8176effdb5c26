/** Prints a label selector object as text, in the order and form of Kubernetes. */
import type { LabelSelector } from '../../api/cattle/label-selector.ts';
import { SelectorError } from '../../kube/selectors.ts';

/** Sorted by key; `further` are more requirements as text. Throws SelectorError. */
export function selectorText({ matchLabels = {}, matchExpressions = [] }: LabelSelector, ...further: string[]): string {
  return [
    ...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`),
    ...matchExpressions.map(requirementText),
    ...further,
  ]
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
    .join(',');
}

function requirementText({
  key,
  operator,
  values = [],
}: NonNullable<LabelSelector['matchExpressions']>[number]): string {
  if ((operator === 'In' || operator === 'NotIn') && values.length === 0) {
    throw new SelectorError(`${operator} of ${key} has no values`);
  }
  const list = `(${values.toSorted().join(',')})`;
  switch (operator) {
    case 'In':
      return `${key} in ${list}`;
    case 'NotIn':
      return `${key} notin ${list}`;
    case 'Exists':
      return key;
    case 'DoesNotExist':
      return `!${key}`;
    default:
      throw new SelectorError(`"${operator}" is not a valid label selector operator`);
  }
}

function keyOf(requirement: string): string {
  return requirement.replace(/^!/, '').split(/[ =]/)[0] ?? '';
}
