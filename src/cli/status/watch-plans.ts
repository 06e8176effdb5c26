/** Follows all plans with watches, and makes a view after each change. */
import { isOpenPlan } from '../../engine/model/shown-phases.ts';
import { type Clock, sleep } from '../../util/clock.ts';
import type { ShownStatus } from './json-form.ts';
import { withLeaderless } from './leaderless.ts';
import { askLeader, follow, followLeader, followPolicies, type Loaded, settled } from './load.ts';
import { observe } from './observe.ts';
import { orphanedIn, type Session } from './status-session.ts';

/** The most milliseconds between two views. Even if nothing changes, a new view is needed because ages grow. */
const AGAIN_MS = 1000;
/**
 * The most milliseconds between two views of an endless watch. The program that reads the views computes the ages
 * itself, so without an event only maintenance windows and deadlines change a view.
 */
const AGAIN_ENDLESS_MS = 60_000;

interface WatchOptions {
  /**
   * If true, the watch continues after every plan has ended. It then also keeps the plans of the last view while the
   * API server does not answer.
   */
  readonly isEndless?: boolean;
  /** Receives a function that makes the watch yield another view at once. */
  readonly onWake?: (wake: () => void) => void;
  /** Receives the objects that the watch follows, before the first view. They stay up to date while the watch lasts. */
  readonly onFollowed?: (followed: readonly Loaded[]) => void;
}

/**
 * Yields a view after each change. Without `isEndless`, it stops after the view in which every plan has ended. Throws
 * the reason of `abort` if `abort` aborts before that.
 */
export async function* watchPlans(
  { loaded, contact, ...session }: Session,
  clock: Clock,
  { isEndless = false, onWake, onFollowed }: WatchOptions = {},
): AsyncGenerator<ShownStatus> {
  const stop = new AbortController();
  const abort = AbortSignal.any([session.abort, stop.signal]);
  const reading = { client: session.client, lease: session.lease, abort };
  // The promise is created before a view is made, so that a change during that time starts another view.
  let changed = Promise.withResolvers<void>();
  const onChange = (): void => changed.resolve();
  onWake?.(onChange);
  try {
    const followed = await Promise.all(
      loaded.map(async ({ dialect }) => await follow(reading, dialect, onChange)),
    );
    onFollowed?.(followed);
    const policies = await followPolicies(reading, session.viewParts.policies, onChange);
    const viewParts = { ...session.viewParts, policies };
    const leader = followLeader(reading, await askLeader(reading, clock.now()));
    const watchedFrom = clock.monotonic();
    const leaderNow = () => settled(leader(clock.now()), clock.monotonic() - watchedFrom);
    let last: ShownStatus | undefined;
    for (;;) {
      // If the credentials were refused, this request ends the watch with an error that explains the problem.
      if (contact.isLoggedOut) await askLeader(reading, clock.now());
      const now = clock.now();
      const began = clock.monotonic();
      const { silentSince } = contact;
      // While the API server does not answer, the known plans are kept, because further requests would only replace the
      // plans by errors.
      const isKept = isEndless && silentSince !== undefined && last !== undefined;
      const plans =
        isKept && last !== undefined
          ? last.plans
          : (
              await Promise.all(followed.map(async (each) => await observe(each, viewParts, now)))
            ).flat();
      last = withLeaderless({
        leader: leaderNow(),
        lease: session.lease,
        orphaned: orphanedIn(followed, viewParts.textsOf),
        ...(silentSince === undefined ? {} : { silentSince }),
        plans,
      });
      yield last;
      const hasOpen = plans.some((plan) => isOpenPlan(plan) || plan.goesOn);
      if (!isEndless && plans.length > 0 && !hasOpen) return;
      // A view of thousands of targets takes some time. The watch then pauses for the same time, so
      // that changes which follow quickly share a view.
      await sleep(clock, clock.monotonic() - began, abort);
      const ms = isEndless ? AGAIN_ENDLESS_MS : AGAIN_MS;
      const seen = last.leader.state;
      // The expiry of a Lease and the loss of the API server are checked regularly, because no watch reports them.
      const isSame = (): boolean =>
        contact.silentSince === silentSince && leaderNow().state === seen;
      await Promise.race([changed.promise, whileSame(isSame, { clock, abort, ms })]);
      abort.throwIfAborted();
      changed = Promise.withResolvers();
    }
  } finally {
    stop.abort();
  }
}

/** Resolves after `ms` milliseconds, or within a second after `isSame` has become false. */
async function whileSame(
  isSame: () => boolean,
  { clock, abort, ms }: { readonly clock: Clock; readonly abort: AbortSignal; readonly ms: number },
): Promise<void> {
  const end = clock.monotonic() + ms;
  while (clock.monotonic() < end && isSame())
    await sleep(clock, Math.min(AGAIN_MS, end - clock.monotonic()), abort);
}
