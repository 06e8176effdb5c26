/**
 * Runs the hooks of policies in the background, while this process leads. No decision ever waits for a hook: decisions
 * determine which runs are due, and read the results.
 */
import type { Clock } from '../util/clock.ts';
import { formatDuration } from '../util/duration.ts';
import { messageOf } from '../util/errors.ts';
import { sameJson } from '../util/json.ts';
import { createListeners } from '../util/listeners.ts';
import { printable } from '../util/printable.ts';
import { aborted, semaphore } from '../util/waits.ts';
import { within } from '../util/within.ts';
import type { HookFinding, HookResult, HookRun } from './rules.ts';

export interface HookRunner {
  /**
   * Carries out the due runs of a plan, and stops checking its other runs. Forgets the results of runs that are neither
   * due nor kept. The failures of the targets in `settled` are not forgotten, because people still read them.
   */
  follow(
    plan: string,
    due: readonly HookRun[],
    kept: readonly string[],
    settled?: readonly string[],
  ): void;
  forget(plan: string): void;
  /** Returns the known results of the runs of the plan. Returns the same list until a result changes. */
  resultsOf(plan: string): readonly HookResult[];
  /** Calls the listener when a run changes its state or its message. The returned function removes the listener. */
  onChange(listener: () => void): () => void;
  /** Runs until `stop` aborts. Before and after that, the runner carries out no hooks and has no results. */
  run(stop: AbortSignal): Promise<void>;
}

/**
 * Starts the run if it has not been started yet, and returns its state. After a rejection, the runner calls the
 * function again.
 */
export type LookAtRun = (run: HookRun, abort: AbortSignal) => Promise<HookFinding>;

/**
 * Milliseconds between two checks of a Job, and between the first two requests to a server. The pauses between later
 * requests are longer.
 */
const EVERY_MS = 3_000;
/** The most milliseconds between two requests to a server. */
const LONGEST_PAUSE_MS = 60_000;
/** Milliseconds that one check of a run may take. */
const WITHIN_MS = 15_000;
/**
 * Milliseconds between the deadline of a run and the time at which this process ends the run. The Job has the same
 * deadline, and its own failure message has more details.
 */
const GRACE_MS = 30_000;
const AT_ONCE = 8;
/** The most characters of a message, because it may contain text from anywhere. */
const LONGEST_MESSAGE = 300;

interface Entry {
  readonly plan: string;
  /** The run as the policy describes it now. Somebody may correct the hook while it runs, for example its URL. */
  run: HookRun;
  /** The time at which this process first carried out the run, by its monotonic clock. */
  readonly startedAt: number;
  result?: HookResult;
  /** The number of checks of the present hook that have ended. */
  looks: number;
  isDue: boolean;
  isLooking: boolean;
  /** Cancels the next check; undefined if no check is planned. */
  cancel?: (() => void) | undefined;
}

export function createHookRunner(clock: Clock, look: LookAtRun): HookRunner {
  return new Runner(clock, look);
}

class Runner implements HookRunner {
  readonly #clock: Clock;
  readonly #look: LookAtRun;
  readonly #entries = new Map<string, Entry>();
  readonly #lists = new Map<string, readonly HookResult[]>();
  readonly #listeners = createListeners();
  readonly #inTurn = semaphore(AT_ONCE);
  /** The signal that ends the current term; undefined if this process does not lead. */
  #stop: AbortSignal | undefined;

  constructor(clock: Clock, look: LookAtRun) {
    this.#clock = clock;
    this.#look = look;
  }

  follow(
    plan: string,
    due: readonly HookRun[],
    kept: readonly string[],
    settled: readonly string[] = [],
  ): void {
    const dueIds = new Set(due.map(({ id }) => id));
    const keptIds = new Set(kept);
    const settledNames = new Set(settled);
    for (const [id, entry] of this.#entries) {
      if (entry.plan !== plan) continue;
      entry.isDue = dueIds.has(id);
      if (!entry.isDue) cancelLook(entry);
      const { state, target } = entry.result ?? {};
      const isShown = state === 'failed' && target !== undefined && settledNames.has(target);
      if (!entry.isDue && !isShown && !keptIds.has(id)) this.#drop(id, entry);
    }
    for (const run of due) {
      const startedAt = this.#clock.monotonic();
      const made = (): Entry => ({
        plan,
        run,
        startedAt,
        looks: 0,
        isDue: true,
        isLooking: false,
      });
      const entry = this.#entries.getOrInsertComputed(run.id, made);
      const isEdited = !sameJson(entry.run.hook, run.hook);
      entry.run = run;
      if (isEdited) startOver(entry);
      if (entry.cancel === undefined) this.#planLook(entry, 0);
    }
  }

  forget(plan: string): void {
    this.follow(plan, [], []);
    this.#lists.delete(plan);
  }

  resultsOf(plan: string): readonly HookResult[] {
    return this.#lists.getOrInsertComputed(plan, () =>
      [...this.#entries.values()].flatMap((entry) =>
        entry.plan === plan && entry.result ? entry.result : [],
      ),
    );
  }

  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  async run(stop: AbortSignal): Promise<void> {
    this.#stop = stop;
    for (const entry of this.#entries.values()) this.#planLook(entry, 0);
    await aborted(stop);
    for (const [id, entry] of this.#entries) this.#drop(id, entry);
    this.#stop = undefined;
  }

  #drop(id: string, entry: Entry): void {
    cancelLook(entry);
    entry.isDue = false;
    this.#entries.delete(id);
    this.#lists.delete(entry.plan);
  }

  #planLook(entry: Entry, ms: number): void {
    const isOver = entry.result !== undefined && entry.result.state !== 'running';
    if (this.#stop === undefined || this.#stop.aborted) return;
    if (isOver || entry.isLooking || !entry.isDue) return;
    entry.cancel = this.#clock.schedule(ms, () => void this.#lookOnce(entry));
  }

  async #lookOnce(entry: Entry): Promise<void> {
    const stop = this.#stop;
    entry.cancel = undefined;
    if (stop === undefined) return;
    entry.isLooking = true;
    const asked = await this.#inTurn(async () => {
      const { hook } = entry.run;
      if (entry.isDue && !stop.aborted) await this.#take(entry, stop);
      return hook;
    });
    entry.isLooking = false;
    const isEdited = !sameJson(entry.run.hook, asked);
    if (!isEdited) entry.looks++;
    this.#planLook(entry, isEdited ? 0 : this.#pauseOf(entry));
  }

  /** Returns the milliseconds until the next check. The last request to a server is sent at the deadline of the run. */
  #pauseOf({ run: { hook }, startedAt, looks }: Entry): number {
    if (hook.action.kind === 'job') return EVERY_MS;
    const pauseMs = Math.min(EVERY_MS * 2 ** (looks - 1), LONGEST_PAUSE_MS);
    const leftMs = startedAt + hook.timeoutMs - this.#clock.monotonic();
    return Math.max(0, Math.min(pauseMs, leftMs));
  }

  async #take(entry: Entry, stop: AbortSignal): Promise<void> {
    const { run, result: before } = entry;
    const found = this.#inTime(entry, await this.#answer(run, stop));
    // If the run was dropped in the meantime, no plan needs this result.
    if (stop.aborted || this.#entries.get(run.id) !== entry) return;
    // If the hook was edited in the meantime, the answer says nothing about the present hook.
    if (!sameJson(entry.run.hook, run.hook)) return;
    const message = printable(found.message).slice(0, LONGEST_MESSAGE);
    const isSame = before?.state === found.state;
    if (isSame && before.message === message) return;
    const since = isSame ? before.since : this.#clock.now();
    const { id, hook, variables } = run;
    const target = variables['REFIT_TARGET'] ?? run.node;
    entry.result = { id, hook: hook.name, target, state: found.state, message, since };
    this.#lists.delete(entry.plan);
    this.#listeners.call();
  }

  /**
   * Ends a run that has not ended when the grace period after its deadline is over. The time is measured from when this
   * process first carried out the run.
   */
  #inTime({ run, startedAt }: Entry, found: HookFinding): HookFinding {
    const { timeoutMs, action } = run.hook;
    const graceMs = action.kind === 'job' ? GRACE_MS : 0;
    const isLate = this.#clock.monotonic() - startedAt >= timeoutMs + graceMs;
    if (found.state !== 'running' || !isLate) return found;
    const message = `it did not end within ${formatDuration(timeoutMs)}: ${found.message}`;
    return { state: 'failed', message };
  }

  async #answer(run: HookRun, stop: AbortSignal): Promise<HookFinding> {
    const late = new Error(`there was no answer within ${WITHIN_MS / 1000} s`);
    const looked = within(
      this.#clock,
      { ms: WITHIN_MS, late, stop },
      async (abort) => await this.#look(run, abort),
    );
    return await looked.catch(
      (error: unknown): HookFinding => ({ state: 'running', message: messageOf(error) }),
    );
  }
}

function cancelLook(entry: Entry): void {
  entry.cancel?.();
  entry.cancel = undefined;
}

/** Makes the next check of an edited hook due at once, and the pauses after it as short as those of a new hook. */
function startOver(entry: Entry): void {
  cancelLook(entry);
  entry.looks = 0;
}
