/** Owns label selectors in the form of an object, as workloads and budgets carry them: matching against labels. */
import type { LabelSelector } from './types.ts';

type Requirement = NonNullable<LabelSelector['matchExpressions']>[number];

/** As policy/v1 means it: no selector selects nothing, an empty one everything. An operator that is unknown selects nothing. */
export function matchesLabels(
  selector: LabelSelector | undefined,
  labels: Readonly<Record<string, string>> = {},
): boolean {
  if (selector === undefined) return false;
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every((requirement) => meets(requirement, labels[requirement.key]))
  );
}

function meets({ operator, values = [] }: Requirement, value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    default:
      return false;
  }
}
