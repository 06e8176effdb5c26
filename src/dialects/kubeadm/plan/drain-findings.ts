/** Warns before an upgrade about drains that would be blocked now. */
import { describeBlockingBudget } from '../../../drain/budgets.ts';
import type { DrainPreview } from '../../../drain/drain-preview.ts';
import { describeRefusedPods } from '../../../drain/pods.ts';
import { type Finding, warn } from '../../../versions/findings.ts';

/**
 * Returns a warning for each host whose drain would be blocked now. These are only warnings, because the obstacle may be
 * gone when the host is drained. `previews` has what a drain of each host would meet, by the name of the host.
 */
export function drainFindings(
  previews: ReadonlyMap<string, DrainPreview>,
  hosts: readonly string[],
): Finding[] {
  return hosts.flatMap((name) => {
    const { obstacles = [], refused = [] } = previews.get(name) ?? {};
    const why = [
      ...obstacles.map(describeBlockingBudget),
      ...(refused.length > 0 ? [describeRefusedPods(refused)] : []),
    ];
    return why.length === 0
      ? []
      : [warn('drain', `${name} cannot be drained now: ${why.join('; ')}`)];
  });
}
