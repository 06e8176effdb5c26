/** Reads the rules for single pods of `spec.drain.pods` of an UpgradePolicy. */
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import type { PodRule } from '../../drain/pod-rules.ts';
import { selectorFault } from '../../kube/selectors.ts';
import { defined } from '../../util/json.ts';

type PodRulesSpec = NonNullable<NonNullable<UpgradePolicySpec['drain']>['pods']>;

const ACTIONS = { Drain: 'evict', Skip: 'leave', WaitCompleted: 'wait' } as const;

/** Returns the rules. Calls `complain` for each field that the API server would not accept. */
export function podRulesIn(
  spec: PodRulesSpec,
  complain: (field: string, wanted: string, found: unknown) => void,
): PodRule[] {
  return spec.map(({ selector, namespaces, behavior, order }, index) => {
    const fault = selectorFault(selector);
    if (fault !== undefined)
      complain(`drain.pods[${index}].selector`, `a label selector (${fault})`, selector);
    if (order !== undefined && behavior !== 'Drain')
      complain(
        `drain.pods[${index}].behavior`,
        'Drain if `order` is set, because only pods with behavior Drain are evicted',
        behavior,
      );
    return {
      pods: [defined({ selector, namespaces })],
      action: ACTIONS[behavior],
      turn: order ?? 0,
    };
  });
}
