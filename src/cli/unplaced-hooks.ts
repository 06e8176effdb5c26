/**
 * Warns about hooks between the drain and the restart. On nodes that the leader does not drain, the work does not wait
 * for these hooks.
 */
import type { UpgradePolicySpec } from '../api/refit/upgrade-policy.ts';
import type { DialectModule } from './contract/dialect-module.ts';
import { isCovered } from './covered-dialects.ts';

const MOMENTS: readonly string[] = ['AfterDrain', 'BeforeRestart'];

/** Returns a warning for each dialect of the policy in which hooks after the drain or before the restart cannot run on every node. */
export function unplacedHooks(
  { hooks = [], plans }: UpgradePolicySpec,
  dialects: readonly (Pick<DialectModule, 'selfDrain'> & { readonly name: string })[],
): string[] {
  const placed = hooks.filter(({ when }) => MOMENTS.includes(when));
  if (placed.length === 0) return [];
  const names = placed.map(({ name }) => name).join(', ');
  const isIgnored = placed.every(({ onFailure }) => onFailure === 'Ignore');
  const effect = isIgnored ? 'goes on without it' : 'does not start';
  return dialects.flatMap(({ name, selfDrain }) =>
    selfDrain === undefined || !isCovered(name, plans)
      ? []
      : [
          `spec.hooks (${names}): no hook runs between the drain and the restart on ${selfDrain.node}, so the node ${effect}. ${selfDrain.when}`,
        ],
  );
}
