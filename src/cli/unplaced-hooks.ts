/**
 * Warns about hooks between the drain and the restart. On nodes that the leader does not drain, the work does not wait
 * for these hooks.
 */
import type { UpgradePolicySpec } from '../api/refit/upgrade-policy.ts';
import { SELF_DRAINING } from './self-draining.ts';

const MOMENTS: readonly string[] = ['AfterDrain', 'BeforeRestart'];

/** For each dialect, names the nodes that the leader does not drain. */
const DRAINED_BY_OTHERS = {
  autopilot: 'a k0s node that drains itself',
  cattle: 'a node that the Job of a Rancher Plan drains',
} as const;

/** Returns a warning for each dialect of the policy in which hooks after the drain or before the restart cannot run on every node. */
export function unplacedHooks({ hooks = [], plans }: UpgradePolicySpec): string[] {
  const placed = hooks.filter(({ when }) => MOMENTS.includes(when));
  if (placed.length === 0) return [];
  const names = placed.map(({ name }) => name).join(', ');
  const isIgnored = placed.every(({ onFailure }) => onFailure === 'Ignore');
  const effect = isIgnored ? 'is upgraded without it' : 'does not start';
  const covers = (dialect: string): boolean =>
    plans === undefined || plans.some((plan) => (plan.dialect ?? dialect) === dialect);
  return (['autopilot', 'cattle'] as const)
    .filter(covers)
    .map(
      (dialect) =>
        `spec.hooks (${names}): no hook runs between the drain and the restart on ${DRAINED_BY_OTHERS[dialect]}, so the node ${effect}. ${SELF_DRAINING[dialect]}`,
    );
}
