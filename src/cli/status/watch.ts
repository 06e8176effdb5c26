/** Follows all plans: a view after every change, until each plan has ended. */
import type { Dialect } from '../../engine/dialect.ts';
import type { KubeClient } from '../../kube/client.ts';
import { type Clock, sleep } from '../../util/clock.ts';
import { askLeader, followLeader } from './leader.ts';
import { follow } from './load.ts';
import { type Looking, observe } from './observe.ts';
import { followPolicies } from './policies.ts';
import type { Contact } from './session.ts';
import type { PlanView, StatusView } from './view.ts';

export interface WatchParts {
  readonly dialects: readonly Dialect[];
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly abort: AbortSignal;
  readonly looking: Looking;
  /** Notes every request of the client. */
  readonly contact: Contact;
}

/** Ages grow without a change, so a view follows after this time at the latest. */
const AGAIN_MS = 1000;

/** In the last view every plan has ended. Throws the reason of `abort` if that comes first. */
export async function* watchPlans(parts: WatchParts): AsyncGenerator<StatusView> {
  const { dialects, client, clock, contact } = parts;
  const stop = new AbortController();
  const abort = AbortSignal.any([parts.abort, stop.signal]);
  const changes = new Changes();
  try {
    const followed = await Promise.all(
      dialects.map(async (dialect) => ({
        dialect,
        ...(await follow(client, dialect, abort, () => changes.note())),
      })),
    );
    const { sources, policies: first } = parts.looking;
    const policies = await followPolicies(client, first, abort, () => changes.note());
    const looking = { sources, policies };
    const leader = followLeader(client, await askLeader(client, clock.now(), abort), abort);
    for (;;) {
      const [now, began] = [clock.now(), clock.monotonic()];
      const views = await Promise.all(followed.map(async (each) => await observe(each.dialect, each, looking, now)));
      const plans = views.flat();
      const { silentSince } = contact;
      yield { leader: leader(now), ...(silentSince === undefined ? {} : { silentSince }), plans };
      if (isOver(plans)) return;
      // A view of thousands of targets takes a while: changes in quick succession share one.
      await sleep(clock, clock.monotonic() - began, abort);
      await changes.next(clock, AGAIN_MS, abort);
    }
  } finally {
    stop.abort();
  }
}

function isOver(plans: readonly PlanView[]): boolean {
  return plans.length > 0 && plans.every(({ phase }) => phase !== 'new' && phase !== 'running');
}

/** Wakes the watch after a change; a change during a view is not lost. */
class Changes {
  #noted = false;
  #wake: (() => void) | undefined;

  note(): void {
    this.#noted = true;
    this.#wake?.();
  }

  /** Resolves at the next change or after `ms`; rejects on `abort`. */
  async next(clock: Clock, ms: number, abort: AbortSignal): Promise<void> {
    if (!this.#noted) {
      const changed = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      await Promise.race([changed, sleep(clock, ms, abort)]);
    }
    abort.throwIfAborted();
    this.#noted = false;
  }
}
