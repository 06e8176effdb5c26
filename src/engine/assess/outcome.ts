/**
 * Describes in one sentence how many targets of a rollout were completed. The sentence is a part of the reason for the
 * end of the rollout.
 */
import { listed } from '../../util/phrases.ts';
import {
  isUpgradedByLaterStage,
  type RecordedState,
  type Rollout,
  type Target,
  targetsIn,
  withStages,
} from '../model/rollout.ts';

/** Returns a sentence such as `6 of 8 targets done; failed: worker2; not started: worker8`. */
export function outcomeOf(rollout: Rollout): string {
  const count = withStages(rollout).length;
  const groups = [
    ['failed', lastingFailures(rollout, 'failed')],
    ['missing', targetsIn(rollout, 'missing')],
    ['without a payload', targetsIn(rollout, 'unsupported')],
    ['skipped', targetsIn(rollout, 'skipped')],
    ['not started', targetsIn(rollout, 'pending')],
  ] as const;
  const named = groups.flatMap(([word, targets]) => {
    const names = [...new Set(targets.map(({ name }) => name))];
    return names.length === 0 ? [] : [`${word}: ${listed(names)}`];
  });
  return [`${targetsIn(rollout, 'done').length} of ${count} targets done`, ...named].join('; ');
}

/** Returns the targets of the rollout in these states, without targets that a later command of the plan has upgraded since. */
export function lastingFailures(rollout: Rollout, ...states: readonly RecordedState[]): Target[] {
  return rollout.stages.flatMap((stage) =>
    stage.targets.filter(
      (target) => states.includes(target.state) && !isUpgradedByLaterStage(rollout, stage, target),
    ),
  );
}
