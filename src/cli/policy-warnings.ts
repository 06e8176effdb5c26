/** Warns about the fields of an UpgradePolicy that have no effect. */
import type { UpgradePolicySpec } from '../api/refit/upgrade-policy.ts';
import { missingEffects } from '../engine/policy/policy-effects.ts';
import type { DialectModule } from './contract/dialect-module.ts';
import { isCovered } from './covered-dialects.ts';
import { unfollowedDrain } from './unfollowed-drain.ts';
import { unlistedJobs } from './unlisted-jobs.ts';
import { unplacedHooks } from './unplaced-hooks.ts';

/** What the warnings need to know about a dialect. */
export interface PolicyDialect extends Pick<DialectModule, 'policyEffects' | 'selfDrain'> {
  readonly name: string;
}

/** Returns the warnings about a valid policy. */
export function policyWarnings(
  spec: UpgradePolicySpec,
  dialects: readonly PolicyDialect[],
): string[] {
  return [
    ...dialects.flatMap(({ name, policyEffects }) =>
      isCovered(name, spec.plans) ? missingEffects(spec, name, policyEffects) : [],
    ),
    ...undrainedWarnings(spec),
    ...unfollowedDrain(spec, dialects),
    ...unplacedHooks(spec, dialects),
    ...unlistedJobs(spec),
  ];
}

function undrainedWarnings({ drain }: UpgradePolicySpec): string[] {
  return drain?.enabled === false && drain.evictionRequests === 'Use'
    ? [
        'spec.drain.evictionRequests: Use has no effect, because spec.drain.enabled is false, so nothing is drained; remove one of them',
      ]
    : [];
}
