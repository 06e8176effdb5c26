/** Warns about the fields of an UpgradePolicy that have no effect. */
import type { UpgradePolicySpec } from '../api/refit/upgrade-policy.ts';
import type { Dialect } from '../engine/contract/dialect.ts';
import { listed } from '../util/phrases.ts';
import type { DialectModule } from './contract/dialect-module.ts';
import type { FieldEffect, PolicyEffects } from './contract/policy-effects.ts';
import { unfollowedDrain } from './unfollowed-drain.ts';
import { unlistedJobs } from './unlisted-jobs.ts';
import { unplacedHooks } from './unplaced-hooks.ts';

/** What the warnings need to know about a dialect. */
export interface PolicyDialect extends Pick<DialectModule, 'policyEffects' | 'selfDrain'> {
  readonly name: string;
  readonly rollBack: Dialect['rollBack'];
}

/** Returns the warnings about a valid policy. */
export function policyWarnings(
  spec: UpgradePolicySpec,
  dialects: readonly PolicyDialect[],
): string[] {
  return [
    ...retryWarnings(spec, dialects),
    ...rollBackWarnings(spec, dialects),
    ...undrainedWarnings(spec),
    ...keepWarnings(spec, dialects),
    ...unfollowedDrain(spec, dialects),
    ...unplacedHooks(spec, dialects),
    ...unlistedJobs(spec),
  ];
}

/** Returns a warning if the policy sets retries for plans that have their own number of attempts. */
function retryWarnings(
  { retry, plans = [] }: UpgradePolicySpec,
  dialects: readonly PolicyDialect[],
): string[] {
  const without = namedIn(plans).flatMap(
    (name) =>
      dialects.find((each) => each.name === name && !each.policyEffects.retry.hasEffect) ?? [],
  );
  if (retry === undefined || without.length === 0) return [];
  const names = without.map(({ name }) => name).join(', ');
  const only = `only ${effective(dialects, 'retry')} are tried again`;
  const others = without.flatMap(({ policyEffects }) => insteadOf(policyEffects.retry));
  return [[`spec.retry has no effect on plans of ${names}; ${only}`, ...others].join('. ')];
}

/** Returns a warning if the policy asks for roll-backs of plans that only people can roll back. */
function rollBackWarnings(
  { onFailure, plans = [] }: UpgradePolicySpec,
  dialects: readonly PolicyDialect[],
): string[] {
  if (onFailure !== 'RollBack') return [];
  return namedIn(plans).flatMap((name) => {
    const rollBack = dialects.find((dialect) => dialect.name === name)?.rollBack;
    return rollBack === undefined || !('byHand' in rollBack)
      ? []
      : [`spec.onFailure: RollBack acts as Stop for plans of ${name}: ${rollBack.byHand}`];
  });
}

function undrainedWarnings({ drain }: UpgradePolicySpec): string[] {
  return drain?.enabled === false && drain.evictionRequests === 'Use'
    ? [
        'spec.drain.evictionRequests: Use has no effect, because spec.drain.enabled is false, so nothing is drained; remove one of them',
      ]
    : [];
}

/** Returns a warning if no plan of the policy keeps a previous binary. */
function keepWarnings(
  { keepPrevious, plans = [] }: UpgradePolicySpec,
  dialects: readonly PolicyDialect[],
): string[] {
  // An entry without a dialect covers the plans of every dialect.
  const isOfAll = plans.some(({ dialect }) => dialect === undefined);
  if (keepPrevious === undefined || plans.length === 0 || isOfAll) return [];
  const named = namedIn(plans);
  const keeps = dialects.filter(({ policyEffects }) => policyEffects.keepPrevious.hasEffect);
  if (keeps.some(({ name }) => named.some((each) => each === name))) return [];
  return [
    `spec.keepPrevious has no effect on plans of ${named.join(', ')}; only nodes of ${effective(dialects, 'keepPrevious')} keep a previous binary`,
  ];
}

/** Returns the dialects that the policy names, each once. */
function namedIn(plans: NonNullable<UpgradePolicySpec['plans']>): readonly string[] {
  return [...new Set(plans.flatMap(({ dialect }) => dialect ?? []))];
}

/** Returns the plans on which the field has an effect, such as `k0s Plans (autopilot)`. */
function effective(dialects: readonly PolicyDialect[], field: keyof PolicyEffects): string {
  return listed(
    dialects.flatMap(({ name, policyEffects: { [field]: effect } }) =>
      effect.hasEffect ? [`${effect.on} (${name})`] : [],
    ),
  );
}

function insteadOf(effect: FieldEffect): string[] {
  return effect.hasEffect || effect.instead === undefined ? [] : [effect.instead];
}
