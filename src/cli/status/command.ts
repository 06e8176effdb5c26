/** Runs `refit status`: shows all plans once, or follows them until each has ended. */
import { EXIT, RefitError } from '../../util/errors.ts';
import type { ConnectionFlags } from '../options.ts';
import { type Form, render, watchWriter } from './render.ts';
import { inSession, lookOnce, type SessionParts } from './session.ts';
import { stateOf } from './text.ts';
import type { PlanView } from './view.ts';
import { type WatchParts, watchPlans } from './watch.ts';

export interface StatusFlags extends ConnectionFlags {
  readonly output: Form;
  readonly watch?: boolean;
}

export interface StatusParts extends SessionParts {
  /** Called with each view of a watch. */
  readonly onView?: ((plans: readonly PlanView[]) => void) | undefined;
}

/** As `showStatus`, but rejects with REFIT_PLAN_FAILED if a watch saw a plan end without success. */
export async function runStatus(flags: StatusFlags, parts: SessionParts): Promise<number> {
  let last: readonly PlanView[] = [];
  const onView = (plans: readonly PlanView[]): void => {
    last = plans;
  };
  const code = await showStatus(flags, { ...parts, onView });
  if (code !== EXIT.failed) return code;
  const ends = last
    .filter(({ phase }) => phase !== 'done')
    .map((plan) => `${plan.kind} ${plan.name} ${stateOf(plan)}: ${plan.reason ?? 'no reason was given'}`);
  throw new RefitError('REFIT_PLAN_FAILED', ends.join('; '));
}

/** Resolves with the exit code: once 0; a watch 0 if all plans are done, else 1, or 130 when interrupted. */
export async function showStatus(flags: StatusFlags, parts: StatusParts): Promise<number> {
  const { clock, output, abort } = parts;
  return await inSession(flags, parts, 'refit-status', async (session) => {
    if (flags.watch) {
      const dialects = session.loaded.map(({ dialect }) => dialect);
      return await watch(flags, parts, { ...session, dialects, clock, abort });
    }
    const now = clock.now();
    output.write(await render(await lookOnce(session, now, abort), flags.output, now, output));
    return EXIT.ok;
  });
}

async function watch(flags: StatusFlags, { output, clock, onView }: StatusParts, parts: WatchParts): Promise<number> {
  const show = watchWriter(output, flags.output);
  let last: readonly PlanView[] = [];
  try {
    for await (const view of watchPlans(parts)) {
      last = view.plans;
      onView?.(last);
      await show(view, clock.now());
    }
  } catch (error) {
    if (parts.abort.aborted) return EXIT.interrupted;
    throw error;
  }
  return last.every(({ phase }) => phase === 'done') ? EXIT.ok : EXIT.failed;
}
