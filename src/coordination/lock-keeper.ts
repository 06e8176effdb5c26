/**
 * Keeps the locks that other tools share with Refit. It works in the background: it reads the locks while unfinished
 * plans coordinate with the tools, takes them while nodes are in progress, renews them, and releases them. No decision
 * waits for an answer.
 */
import { forbiddingOf, isAlreadyExists, isConflict, isMissingRight } from '../kube/status-error.ts';
import type { Clock } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { defined, sameJson } from '../util/json.ts';
import { createListeners } from '../util/listeners.ts';
import { printable } from '../util/printable.ts';
import { aborted } from '../util/waits.ts';
import { LOCKS } from './locks.ts';
import type { KnownLock, LockClient, LockKind, LockView, Look, ToolName } from './tool.ts';

/**
 * Says whether a plan needs the locks. `over`: the plan has ended, and needs no lock. `waits`: the plan has no node in
 * progress. `at-work`: the plan has nodes in progress.
 */
export type LockNeed = 'over' | 'waits' | 'at-work';

export interface LockKeeper {
  /** From now on, keeps the locks of these tools for the plan. It keeps no other locks for this plan. */
  follow(plan: string, tools: readonly ToolName[], need: LockNeed): void;
  forget(plan: string): void;
  /** Returns the result of the last check of each lock. A lock that was never checked is missing. */
  locks(): readonly KnownLock[];
  /** Calls the listener when the locks change. The returned function removes the listener. */
  onChange(listener: () => void): () => void;
  /**
   * Runs until `stop` aborts, and then releases the locks that no plan needs. Before the run and after it, `locks`
   * returns nothing.
   */
  run(stop: AbortSignal): Promise<void>;
}

export interface KeeperParts {
  readonly client: LockClient;
  readonly clock: Clock;
  /** The name under which locks are taken. */
  readonly holder: string;
}

/** Milliseconds between two checks of a lock. */
const EVERY_MS = 10_000;
/** Milliseconds until the next check, if somebody else changed the lock at the same time as Refit. */
const CONFLICT_MS = 1_000;
/**
 * Milliseconds for which Refit keeps a lock of a former leader although no plan needs it yet. In this time, each plan
 * reports whether it needs the lock.
 */
const INHERITED_MS = 60_000;

export function createLockKeeper(parts: KeeperParts): LockKeeper {
  const listeners = createListeners();
  const kept = LOCKS.map((kind) => new KeptLock(kind, parts, () => listeners.call()));
  return {
    follow(plan, tools, need) {
      for (const each of kept)
        if (tools.includes(each.kind.tool)) each.follow(plan, need);
        else each.forget(plan);
    },
    forget(plan) {
      for (const each of kept) each.forget(plan);
    },
    locks: () => kept.flatMap(({ known }) => known ?? []),
    onChange: (listener) => listeners.add(listener),
    async run(stop) {
      for (const each of kept) each.begin(stop);
      await aborted(stop);
      await Promise.all(kept.map(async (each) => await each.end()));
    },
  };
}

class KeptLock {
  readonly kind: LockKind;
  readonly #parts: KeeperParts;
  readonly #tell: () => void;
  /** The plans that have not ended, and whether they have nodes in progress. */
  readonly #plans = new Map<string, boolean>();
  #known: KnownLock | undefined;
  /** True if Refit held only a part of the lock at the last check, or may hold a part after a failed take. */
  #isPart = false;
  #running: AbortSignal | undefined;
  #cancel: (() => void) | undefined;
  #isLooking = false;
  #isAskedAgain = false;
  /** True after a check that began after the first of the present plans. */
  #isFresh = false;
  /** True after the first check of this term has ended. */
  #hasLooked = false;
  /**
   * The time until which no lock is released, by the monotonic clock. The first successful check of this term sets the
   * time.
   */
  #keptUntil = Number.POSITIVE_INFINITY;
  /**
   * The last renewal by another holder, and the time at which this process first read it. So the clock of the holder
   * does not matter.
   */
  #renewal: { readonly text: string; readonly at: number } | undefined;

  constructor(kind: LockKind, parts: KeeperParts, tell: () => void) {
    this.kind = kind;
    this.#parts = parts;
    this.#tell = tell;
  }

  /** What is known from an earlier need is too old: another tool may have taken the lock, or may have been installed. */
  get known(): KnownLock | undefined {
    return this.#plans.size > 0 && this.#isFresh ? this.#known : undefined;
  }

  follow(plan: string, need: LockNeed): void {
    if (need === 'over') {
      this.forget(plan);
      // Even without a plan, one check is needed, because a former leader may not have released its lock.
      if (!this.#hasLooked) this.#wake();
      return;
    }
    const before = this.#plans.get(plan);
    if (this.#plans.size === 0) this.#isFresh = false;
    const isAtWork = need === 'at-work';
    this.#plans.set(plan, isAtWork);
    const isMissing = isAtWork && before !== true && this.#known?.isOurs === false;
    if (before === undefined || isMissing) this.#wake();
  }

  forget(plan: string): void {
    if (!this.#plans.delete(plan) || this.#plans.size > 0) return;
    if (this.#known?.isOurs === true || this.#isPart) return;
    this.#cancel?.();
    this.#known = undefined;
  }

  begin(stop: AbortSignal): void {
    this.#running = stop;
    this.#isFresh = false;
    this.#hasLooked = false;
    this.#keptUntil = Number.POSITIVE_INFINITY;
    if (this.#plans.size > 0) this.#wake();
  }

  async end(): Promise<void> {
    this.#cancel?.();
    this.#running = undefined;
    const isLeft = (this.#known?.isOurs === true || this.#isPart) && this.#isLeft();
    this.#plans.clear();
    this.#known = undefined;
    if (!isLeft) return;
    // Errors are ignored, because a lock that this process cannot release expires by itself.
    const view = await this.#look().catch(() => undefined);
    if (view && isHeld(view)) await view.giveBack?.().catch(() => undefined);
  }

  #isNeeded(): boolean {
    return [...this.#plans.values()].includes(true);
  }

  /** Returns true if no plan needs the lock, and all plans have had enough time to report that they need it. */
  #isLeft(): boolean {
    return !this.#isNeeded() && this.#parts.clock.monotonic() >= this.#keptUntil;
  }

  /** Checks the lock now. Checks never overlap: if a check is running, the next one starts after it. */
  #wake(): void {
    const stop = this.#running;
    if (!stop) return;
    this.#cancel?.();
    this.#isAskedAgain = this.#isLooking;
    if (!this.#isLooking) void this.#turn(stop);
  }

  async #turn(stop: AbortSignal): Promise<void> {
    this.#isLooking = true;
    const { known, inMs } = await this.#keep(stop);
    this.#isLooking = false;
    // If this term has ended meanwhile, a new term may have begun. The result of the old term must not replace the
    // state of the new term.
    if (stop.aborted) {
      if (this.#running && this.#plans.size > 0) this.#wake();
      return;
    }
    this.#hasLooked = true;
    const isNews = !this.#isFresh && !this.#isAskedAgain;
    this.#isFresh ||= isNews;
    const isSame = !isNews && this.#known !== undefined && sameJson(this.#known, known);
    this.#known = known;
    const { clock } = this.#parts;
    // Without a plan and without a lock to release, no further check is needed.
    const isIdle = this.#plans.size === 0 && known.isOurs !== true && !this.#isPart;
    if (isIdle) this.#known = undefined;
    else if (this.#isAskedAgain) this.#wake();
    else this.#cancel = clock.schedule(inMs, () => this.#wake());
    if (!isSame) this.#tell();
  }

  /** Checks the lock once, and takes, renews or releases it. */
  async #keep(stop: AbortSignal): Promise<{ known: KnownLock; inMs: number }> {
    const { tool, title, place, taking } = this.kind;
    let view: LockView;
    try {
      view = await this.#look(stop);
    } catch (error) {
      // A lock that cannot be read counts as held, because its holder may be disrupting nodes.
      const message = `${title} cannot be read: ${printable(messageOf(error))}`;
      const other = { tool, message, ends: `the API server lets Refit read ${place}` };
      return { known: { tool, others: [other] }, inMs: EVERY_MS };
    }
    const { others, renewedAt } = view;
    this.#isPart = view.part !== undefined;
    if (this.#keptUntil === Number.POSITIVE_INFINITY) {
      const now = this.#parts.clock.monotonic();
      this.#keptUntil = isHeld(view) ? now + INHERITED_MS : now;
    }
    try {
      const isOurs = await this.#change(view, taking.renewMs);
      const known = defined({ tool, others, isOurs, notFound: view.notFound });
      return { known, inMs: EVERY_MS };
    } catch (error) {
      // A lock that could not be renewed is lost after it has expired, although it still contains the name of Refit.
      const isOurs =
        renewedAt !== undefined && this.#parts.clock.now() - renewedAt < taking.lastsMs;
      if (isConflict(error) || isAlreadyExists(error))
        return { known: { tool, others, isOurs }, inMs: CONFLICT_MS };
      const problem = printable(messageOf(error));
      const isBarred = forbiddingOf(error) !== undefined && !isMissingRight(error);
      const known = { tool, others, isOurs, problem, ...(isBarred && { isBarred }) };
      return { known, inMs: EVERY_MS };
    }
  }

  /** Takes, renews or releases the lock. Resolves with true if Refit holds the lock afterwards. */
  async #change(view: LockView, renewMs: number): Promise<boolean> {
    const { renewedAt, others } = view;
    const { clock } = this.#parts;
    if (!this.#isNeeded()) {
      if (!isHeld(view) || !this.#isLeft()) return renewedAt !== undefined;
      // The lock counts as lost before the request to release it is sent, so that no node starts until the answer
      // arrives.
      this.#known = { tool: this.kind.tool, others, isOurs: false };
      this.#tell();
      await view.giveBack?.();
      this.#isPart = false;
      return false;
    }
    if (renewedAt === undefined && others.length > 0) {
      // Nodes may be down under this part: Refit had the whole lock before another part came.
      const { part } = view;
      if (part && !isYoung(clock.now() - part.renewedAt, renewMs)) await part.renew();
      return false;
    }
    if (renewedAt !== undefined && isYoung(clock.now() - renewedAt, renewMs)) return true;
    // A take that fails may leave a part of the lock behind. The next check says whether it did.
    this.#isPart = true;
    await view.take?.();
    this.#isPart = false;
    return true;
  }

  async #look(abort?: AbortSignal): Promise<LockView> {
    const { client, clock, holder } = this.#parts;
    const look: Look = {
      holder,
      isOwn: (other) => other === holder,
      now: clock.now(),
      ageOf: (renewal) => {
        if (this.#renewal?.text !== renewal)
          this.#renewal = { text: renewal, at: clock.monotonic() };
        return clock.monotonic() - this.#renewal.at;
      },
      ...(abort ? { abort } : {}),
    };
    return await this.kind.look(client, look);
  }
}

/** Returns true if Refit holds the lock or a part of it. */
function isHeld({ renewedAt, part }: LockView): boolean {
  return renewedAt !== undefined || part !== undefined;
}

/**
 * Returns true if the last renewal is so recent that the lock need not be renewed yet. A renewal in the future counts
 * as old, because the clock was set back after it.
 */
function isYoung(ageMs: number, renewMs: number): boolean {
  return ageMs >= 0 && ageMs < renewMs;
}
