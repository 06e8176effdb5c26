/** Warns before an upgrade about drains that would be blocked now. */
import { describeBlockingBudget } from '../../../drain/budgets.ts';
import { type DrainPreview, isHeldBack } from '../../../drain/drain-preview.ts';
import { describeRefusedPods } from '../../../drain/pods.ts';
import { budgetWarning } from '../../../engine/explain/drain-warnings.ts';
import type { RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { type Finding, warn } from '../../../versions/findings.ts';

/**
 * Returns a warning for each host whose drain would not start or may not end. These are only warnings, because the
 * obstacle may be gone when the host is drained. `previews` has what a drain of each host would meet, by the name of the host.
 */
export function drainFindings(
  previews: ReadonlyMap<string, DrainPreview>,
  hosts: readonly string[],
  policy: RolloutPolicy,
): Finding[] {
  return hosts.flatMap((name) => {
    const preview = previews.get(name);
    if (!preview) return [];
    const { obstacles, refused } = preview;
    const warnings = budgetWarning({ name }, preview, policy).map((text) => warn('drain', text));
    if (!isHeldBack(preview, policy.drain)) return warnings;
    const why = [
      ...(policy.drain.waitsForBudgets === true ? obstacles.map(describeBlockingBudget) : []),
      ...(refused.length > 0 ? [describeRefusedPods(refused, policy.drain.options)] : []),
    ];
    return [warn('drain', `${name} cannot be drained now: ${why.join('; ')}`), ...warnings];
  });
}
