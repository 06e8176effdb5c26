/** Runs `refit status`: shows all plans once, or follows them until each has ended. */
import { isOpenPlan } from '../../engine/model/shown-phases.ts';
import { formatDuration } from '../../util/duration.ts';
import { EXIT, RefitError } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';
import type { ConnectionFlags } from '../options.ts';
import type { ShownPlan } from './json-form.ts';
import type { PlanFilter } from './plan-names.ts';
import { type Form, render, watchWriter } from './render.ts';
import { inSession, observeOnce, type Session, type SessionParts } from './status-session.ts';
import { stateOf, titleOf } from './text.ts';
import { watchPlans } from './watch-plans.ts';

export interface StatusFlags extends ConnectionFlags, PlanFilter {
  readonly output: Form;
  readonly watch?: boolean;
  /** Milliseconds that a watch may take; undefined if it has no limit. */
  readonly timeout?: number;
}

export interface StatusParts extends SessionParts {
  readonly onView?: ((plans: readonly ShownPlan[]) => void) | undefined;
}

/**
 * Runs the command as `showStatus` does, but rejects with REFIT_PLAN_FAILED if a watch observed that a plan ended
 * without success.
 */
export async function runStatus(flags: StatusFlags, parts: SessionParts): Promise<number> {
  let last: readonly ShownPlan[] = [];
  const code = await showStatus(flags, {
    ...parts,
    onView: (plans) => {
      last = plans;
    },
  });
  if (code !== EXIT.failed) return code;
  const ends = last
    .filter(({ phase }) => phase !== 'done')
    .map(
      (plan) =>
        `${plan.kind} ${plan.name} ${stateOf(plan)}: ${plan.reason ?? 'no reason was given'}`,
    );
  throw new RefitError('REFIT_PLAN_FAILED', '', { problems: ends });
}

/**
 * Shows the plans and resolves with the exit code. Without a watch, the code is 0. After a watch, it is 0 if all plans are done, 130 if the
 * watch was interrupted, and otherwise 1.
 */
export async function showStatus(flags: StatusFlags, parts: StatusParts): Promise<number> {
  const { clock, output } = parts;
  if (flags.timeout !== undefined && flags.watch !== true)
    throw new RefitError(
      'REFIT_USAGE',
      '--timeout limits how long --watch follows the plans: add --watch, or leave --timeout out',
    );
  return await inSession(flags, parts, 'refit-status', async (session) => {
    if (flags.watch) return await watch(flags, parts, session);
    const now = clock.now();
    output.write(render(await observeOnce(session, now), flags.output, now, output));
    return EXIT.ok;
  });
}

async function watch(
  flags: StatusFlags,
  { output, clock, onView }: StatusParts,
  session: Session,
): Promise<number> {
  const show = watchWriter(output, flags.output);
  let last: readonly ShownPlan[] = [];
  const late = new AbortController();
  const { timeout } = flags;
  const cancel =
    timeout === undefined ? () => undefined : clock.schedule(timeout, () => late.abort());
  const abort = AbortSignal.any([session.abort, late.signal]);
  try {
    for await (const view of watchPlans({ ...session, abort }, clock)) {
      last = view.plans;
      onView?.(last);
      show(view, clock.now());
    }
  } catch (error) {
    if (session.abort.aborted) return EXIT.interrupted;
    if (late.signal.aborted) throw timedOut(last, timeout);
    throw error;
  } finally {
    cancel();
  }
  return exitCodeOf(last);
}

function timedOut(plans: readonly ShownPlan[], timeout = 0): RefitError {
  const open = plans.filter((plan) => isOpenPlan(plan) || plan.goesOn).map(titleOf);
  const what = plans.length === 0 ? 'there was no plan' : `${listed(open)} had not ended`;
  return new RefitError('REFIT_TIMEOUT', `${what} after ${formatDuration(timeout)}`);
}

/**
 * Returns 0 only if all plans are done. An ended plan is not done if it was edited since, had no target, or if its nodes run another
 * version.
 */
export function exitCodeOf(plans: readonly Pick<ShownPlan, 'phase'>[]): number {
  return plans.every(({ phase }) => phase === 'done') ? EXIT.ok : EXIT.failed;
}
