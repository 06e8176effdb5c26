/** Runs `refit status`: shows all plans once, or follows them until each has ended. */
import { type Clock, sleep } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { EXIT, RefitError } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';
import type { ConnectionFlags } from '../options.ts';
import { askLeader, follow, followLeader, followPolicies, settled } from './load.ts';
import { observe } from './observe.ts';
import type { PlanFilter } from './plan-names.ts';
import { type Form, render, watchWriter } from './render.ts';
import {
  inSession,
  observeOnce,
  orphanedIn,
  type Session,
  type SessionParts,
} from './status-session.ts';
import { isOpen, stateOf, titleOf } from './text.ts';
import type { PlanView, StatusView } from './view.ts';

interface StatusFlags extends ConnectionFlags, PlanFilter {
  readonly output: Form;
  readonly watch?: boolean;
  /** Milliseconds that a watch may take; undefined if it has no limit. */
  readonly timeout?: number;
}

export interface StatusParts extends SessionParts {
  readonly onView?: ((plans: readonly PlanView[]) => void) | undefined;
}

/** Runs the command as `showStatus` does, but rejects with REFIT_PLAN_FAILED if a watch saw a plan end without success. */
export async function runStatus(flags: StatusFlags, parts: SessionParts): Promise<number> {
  let last: readonly PlanView[] = [];
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

/** Shows the plans and resolves with the exit code. Without a watch, that is 0. A watch gives 0 if all plans are done, 130 if it was interrupted, and otherwise 1. */
export async function showStatus(flags: StatusFlags, parts: StatusParts): Promise<number> {
  const { clock, output } = parts;
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
  let last: readonly PlanView[] = [];
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

function timedOut(plans: readonly PlanView[], timeout = 0): RefitError {
  const open = plans.filter((plan) => isOpen(plan) || plan.goesOn).map(titleOf);
  const what = plans.length === 0 ? 'there was no plan' : `${listed(open)} had not ended`;
  return new RefitError('REFIT_TIMEOUT', `${what} after ${formatDuration(timeout)}`);
}

/** Returns 0 only if all plans are done. An ended plan is not done if it was edited since, had no target, or if its nodes run another version. */
export function exitCodeOf(plans: readonly Pick<PlanView, 'phase'>[]): number {
  return plans.every(({ phase }) => phase === 'done') ? EXIT.ok : EXIT.failed;
}

/** Most milliseconds between two views. Ages grow even if nothing changes. */
const AGAIN_MS = 1000;

/** Yields a view after each change. In the last view, every plan has ended. Throws the reason of `abort` if that comes first. */
async function* watchPlans(
  { loaded, contact, ...session }: Session,
  clock: Clock,
): AsyncGenerator<StatusView> {
  const stop = new AbortController();
  const abort = AbortSignal.any([session.abort, stop.signal]);
  const reading = { client: session.client, abort };
  // The promise is created before a view, so that a change during the view starts another one.
  let changed = Promise.withResolvers<void>();
  const onChange = (): void => changed.resolve();
  try {
    const followed = await Promise.all(
      loaded.map(async ({ dialect }) => await follow(reading, dialect, onChange)),
    );
    const policies = await followPolicies(reading, session.viewParts.policies, onChange);
    const viewParts = { ...session.viewParts, policies };
    const leader = followLeader(reading, await askLeader(reading, clock.now()));
    const watchedFrom = clock.monotonic();
    for (;;) {
      // This request fails with an error that explains the problem, and so ends the watch.
      if (contact.isLoggedOut) await askLeader(reading, clock.now());
      const now = clock.now();
      const began = clock.monotonic();
      const plans = (
        await Promise.all(followed.map(async (each) => await observe(each, viewParts, now)))
      ).flat();
      const { silentSince } = contact;
      const orphaned = orphanedIn(followed);
      yield {
        leader: settled(leader(now), began - watchedFrom),
        orphaned,
        ...(silentSince === undefined ? {} : { silentSince }),
        plans,
      };
      if (plans.length > 0 && !plans.some((plan) => isOpen(plan) || plan.goesOn)) return;
      // A view of thousands of targets takes some time. The watch then pauses for the same time, so
      // that changes which follow quickly share a view.
      await sleep(clock, clock.monotonic() - began, abort);
      await Promise.race([changed.promise, sleep(clock, AGAIN_MS, abort)]);
      abort.throwIfAborted();
      changed = Promise.withResolvers();
    }
  } finally {
    stop.abort();
  }
}
