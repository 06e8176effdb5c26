/** Owns the agent's loop: see the object and the host, decide, journal, act, journal; again whenever something changed. */
import { isConflict } from '../kube/status-error.ts';
import type { KubeObject } from '../kube/types.ts';
import type { SignalData } from '../signal/codec.ts';
import { decodeSignal } from '../signal/codec.ts';
import { backoffDelay } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import { rfc3339 } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import type { Logger } from '../util/log.ts';
import type { HostFacts } from './host.ts';
import type { ActiveJournal, Journal } from './journal.ts';
import { IDLE, journalAfter, journalBefore, resumed } from './journal.ts';
import { isAtRest, isFor, nextStep } from './next-step.ts';
import { withStatus } from './report-writer.ts';
import type { SignalObject } from './signal-object.ts';
import type { Outcome, Step } from './step.ts';
import { changeOrTimeout } from './wake-up.ts';

export interface AgentParts {
  readonly object: SignalObject;
  readonly loadJournal: () => Promise<Journal>;
  /** Resolves once the journal is on the disk. */
  readonly saveJournal: (journal: Journal) => Promise<void>;
  readonly observe: (journal: Journal) => Promise<HostFacts>;
  /** Rejects only where the signal aborts. */
  readonly perform: (step: Step, journal: ActiveJournal, signal: AbortSignal) => Promise<Outcome>;
  readonly restartTimeoutMs: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}

/** While a restart is pending the service is asked this often; nothing announces that its socket is there. */
const FAST_POLL_MS = 75;
const SLOW_POLL_MS = 1_000;
/** An API server that restarts with its node is back within seconds, and the next node waits for the report. */
const RETRY = { base: 50, cap: 2_000 };

export class Agent {
  readonly #parts: AgentParts;
  readonly #epoch: number;
  #journal: Journal = IDLE;
  #failures = 0;
  #isWaiting = false;

  constructor(parts: AgentParts) {
    this.#parts = parts;
    this.#epoch = parts.clock.now() - parts.clock.monotonic();
  }

  /** Works until `stop` aborts; rejects only where the journal cannot be read. */
  async run(stop: AbortSignal): Promise<void> {
    const { object, log, clock } = this.#parts;
    this.#journal = resumed(await this.#parts.loadJournal(), this.#now());
    if (this.#journal.phase !== 'idle') log.info('resuming', { phase: this.#journal.phase });
    // Not awaited: a service that waits for its old binary must not depend on an API server that may run on this host.
    void object.follow(stop);
    while (!stop.aborted) {
      const seen = object.version;
      const pauseMs = await this.#turn(stop).catch((error: unknown) => this.#failed(error, stop));
      if (pauseMs !== 0) await changeOrTimeout(object, seen, pauseMs, { clock, stop });
    }
  }

  /** One decision and its step; returns the milliseconds to pause unless the object changes, undefined for no limit. */
  async #turn(stop: AbortSignal): Promise<number | undefined> {
    const { object, observe, restartTimeoutMs } = this.#parts;
    const { newest } = object;
    const signal = object.isKnown ? decodeSignal(newest?.metadata.annotations) : signalOf(this.#journal);
    if (isAtRest(signal, this.#journal)) return undefined;
    const host = await observe(this.#journal);
    const step = nextStep({ signal, journal: this.#journal, host, now: this.#now(), restartTimeoutMs });
    if (step.kind === 'nothing' || (step.kind === 'report' && newest === undefined)) return undefined;
    if (step.kind === 'await-service') return this.#await(step, host);
    this.#isWaiting = false;
    const before = this.#journal;
    await this.#keep(journalBefore(step, before, this.#now()));
    if (step.kind !== 'report') await this.#act(step, stop);
    else if (newest !== undefined && signal !== undefined) await this.#report(step, newest, signal);
    this.#failures = 0;
    return this.#journal === before ? FAST_POLL_MS : 0;
  }

  /** Milliseconds until the service is asked again; who waits without a restart pending says so, once. */
  #await({ until }: { until?: number }, { problem }: HostFacts): number {
    if (until !== undefined) return FAST_POLL_MS;
    if (!this.#isWaiting) this.#parts.log.warn('waiting for the service', { reason: problem });
    this.#isWaiting = true;
    return SLOW_POLL_MS;
  }

  async #act(step: Step, stop: AbortSignal): Promise<void> {
    const { perform, log } = this.#parts;
    if (this.#journal.phase === 'idle') return;
    log.info('step', { step: step.kind, phase: this.#journal.phase });
    using watch = this.#cancelWhenSuperseded(stop);
    const outcome = await perform(step, this.#journal, watch.signal);
    if (!outcome.ok) log.error('the step failed', { step: step.kind, reason: outcome.reason });
    await this.#keep(journalAfter(step, this.#journal, outcome, this.#now()));
  }

  async #report(step: Extract<Step, { kind: 'report' }>, newest: KubeObject, signal: SignalData): Promise<void> {
    const { object, clock, log } = this.#parts;
    const after = journalAfter(step, this.#journal, { ok: true }, this.#now());
    try {
      await object.write(withStatus(newest, signal, step, after, clock.now()));
    } catch (error) {
      // Whether it got there or not: the object itself tells, and with it the next decision.
      await object.refresh();
      throw error;
    }
    log.info('reported', { status: step.status, ...(step.reason === undefined ? {} : { reason: step.reason }) });
    await this.#keep(after);
  }

  /** Ends what can be ended early as soon as the object carries another signal than the one worked on. */
  #cancelWhenSuperseded(stop: AbortSignal): Disposable & { signal: AbortSignal } {
    const { object } = this.#parts;
    const own = new AbortController();
    const unsubscribe = object.onChange(() => {
      const signal = decodeSignal(object.newest?.metadata.annotations);
      const isOurs = this.#journal.phase !== 'idle' && signal !== undefined && isFor(this.#journal, signal);
      if (!isOurs) own.abort(new Error('the object carries another signal now'));
    });
    return { signal: AbortSignal.any([stop, own.signal]), [Symbol.dispose]: unsubscribe };
  }

  async #keep(journal: Journal): Promise<void> {
    if (journal === this.#journal) return;
    await this.#parts.saveJournal(journal);
    this.#journal = journal;
  }

  /** What went wrong is logged and done again: at once after a conflict, else after a growing pause. */
  #failed(error: unknown, stop: AbortSignal): number {
    if (stop.aborted) return 0;
    const { log, random } = this.#parts;
    const pauseMs = isConflict(error) && this.#failures === 0 ? 0 : backoffDelay(this.#failures, { ...RETRY, random });
    this.#failures++;
    log.warn('tried again', { reason: messageOf(error), pauseMs });
    return pauseMs;
  }

  /** Steady milliseconds: wall clock at the start, then never jumping, so that no deadline does. */
  #now(): number {
    return this.#epoch + this.#parts.clock.monotonic();
  }
}

/** The signal as the journal last knew it, for the time until the object is known. */
function signalOf(journal: Journal): SignalData | undefined {
  if (journal.phase === 'idle') return undefined;
  const status = journal.entered && { status: journal.entered.status, timestamp: rfc3339(journal.entered.at) };
  return { ...journal.work.signal, ...(status && { status }) };
}
