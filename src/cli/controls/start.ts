/** Implements `refit start`: opens the maintenance window of one plan for a given time. */
import { endOfOpening, isTimetableOpen } from '../../engine/gates/window-open.ts';
import { OPEN_WINDOW_ANNOTATION, type OpenWindow } from '../../engine/model/controls.ts';
import { isFinal } from '../../engine/model/rollout.ts';
import type { RolloutPolicy } from '../../engine/policy/rollout-policy.ts';
import { rfc3339 } from '../../util/clock.ts';
import { RefitError } from '../../util/errors.ts';
import { defined } from '../../util/json.ts';
import { listed } from '../../util/phrases.ts';
import { shownAt } from '../status/observe.ts';
import type { SessionParts } from '../status/status-session.ts';
import { stateOf, titleOf } from '../status/text.ts';
import { nameOfUser } from '../user-name.ts';
import type { Control } from './control.ts';
import { applyControl, type ControlFlags } from './control-command.ts';

export interface StartFlags extends ControlFlags {
  /** The length of the opening in milliseconds. */
  readonly for: number;
  readonly reason?: string;
  readonly blackouts?: boolean;
}

/** Opens the window of the plan that the user named, and prints which nodes start. */
export async function start(flags: StartFlags, parts: SessionParts): Promise<void> {
  const by = await nameOfUser(flags, parts);
  await applyControl(openWindow(flags, by), flags, parts);
}

/**
 * Returns the control that opens the window. It replaces an earlier opening. It throws REFIT_CONTROL if the plan has ended or was aborted,
 * or if the plan has neither window nor blackout.
 */
export function openWindow(
  { for: lengthMs, reason, blackouts }: Pick<StartFlags, 'for' | 'reason' | 'blackouts'>,
  by: string,
): Control {
  return (plan, now) => {
    const { snapshot, policy, view } = plan;
    const title = titleOf(view);
    const { abort } = snapshot.plan.controls;
    const state = abort === undefined ? stateOf(view) : `was aborted (${abort})`;
    if (abort !== undefined || isFinal(snapshot.rollout))
      throw new RefitError('REFIT_CONTROL', `${title} ${state}: nothing is left to start`);
    const [problem] = policy.problems ?? [];
    if (problem !== undefined)
      throw new RefitError('REFIT_CONTROL', `${title} starts nothing, because ${problem.message}`, {
        hint: `correct UpgradePolicy ${policy.name} first`,
      });
    if (!hasTimetable(policy))
      throw new RefitError(
        'REFIT_CONTROL',
        `${title} has no maintenance window and no blackout, so there is nothing to open`,
        { hint: 'see what it waits for with `refit why`' },
      );
    const opening: OpenWindow = {
      until: rfc3339(now + lengthMs),
      since: rfc3339(now),
      by,
      ...(reason?.trim() ? { reason: reason.trim() } : {}),
      ...(blackouts === true ? { blackouts } : {}),
    };
    const controls = { ...snapshot.plan.controls, openWindow: opening };
    const opened = { ...snapshot, plan: { ...snapshot.plan, controls } };
    const { next, waits } = shownAt({ ...plan, snapshot: opened }, now);
    const holding = waits.filter(({ ofStage, gate }) => ofStage === true && gate !== 'slots');
    const isOpenAnyway = isTimetableOpen(policy, now);
    return {
      annotations: { [OPEN_WINDOW_ANNOTATION]: JSON.stringify(defined(opening)) },
      said: [
        `The maintenance window of ${title} is open until ${endOfOpening(opening, policy)}.`,
        ...(isOpenAnyway ? ['The window is open now even without this command.'] : []),
        'After that time, nodes start only when the windows and blackouts allow it; nodes in progress finish.',
        ...(next.length > 0 ? [`Next: ${listed(next)}.`] : []),
        ...holding.map(
          ({ reason: { message }, ends }) => `It still waits: ${message}; this ends when ${ends}.`,
        ),
      ],
    };
  };
}

function hasTimetable({ windows, blackouts, planWindows = [] }: RolloutPolicy): boolean {
  return windows.length + blackouts.length + planWindows.length > 0;
}
