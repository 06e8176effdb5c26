/** Owns the agent's loop: see the object and the host, decide, journal, act, journal; again whenever something changed. */
import { isConflict } from '../kube/status-error.ts';
import type { KubeObject } from '../kube/types.ts';
import type { SignalData } from '../signal/codec.ts';
import { backoffDelay } from '../util/backoff.ts';
import { messageOf } from '../util/errors.ts';
import type { ActiveJournal, Journal } from './journal.ts';
import { IDLE } from './journal.ts';
import { isAtRest, isStanding, nextStep } from './next-step.ts';
import { withStatus } from './object/report-writer.ts';
import type { ObserverParts } from './observe.ts';
import { StepInputObserver } from './observe.ts';
import type { StepInput } from './step-input.ts';
import type { Step, StepOutcome } from './steps/step.ts';
import { journalAfter, journalBefore, noticed, resumed } from './transitions.ts';
import { changeOrTimeout } from './wake-up.ts';

/** An agent follows one object with one journal: a host that has two objects runs two agents. */
export interface AgentParts extends ObserverParts {
  readonly loadJournal: () => Promise<Journal>;
  /** Resolves once the journal is on the disk. */
  readonly saveJournal: (journal: Journal) => Promise<void>;
  /** Rejects only where the signal aborts. */
  readonly perform: (step: Step, journal: ActiveJournal, abort: AbortSignal) => Promise<StepOutcome>;
  readonly random: () => number;
}

/** While a restart is pending the service is asked this often; nothing announces that its socket is there. */
const FAST_POLL_MS = 75;
const SLOW_POLL_MS = 1_000;
/** Leases are not watched: who cordons may change without a change of the object. */
const LEADER_POLL_MS = 5_000;
/** An API server that restarts with its node is back within seconds, and the next node waits for the report. */
const RETRY = { base: 50, cap: 2_000 };

/** Steps that may take minutes, and are of no use to a signal that is over. */
const LONG_STEPS: readonly Step['kind'][] = ['download', 'try-out', 'cordon-and-drain', 'fetch-bundle'];

type AwaitStep = Extract<Step, { kind: 'await-service' | 'await-leader' }>;

export class Agent {
  readonly #parts: AgentParts;
  readonly #look: StepInputObserver;
  readonly #epoch: number;
  #journal: Journal = IDLE;
  #failures = 0;
  #awaited: AwaitStep['kind'] | undefined;

  constructor(parts: AgentParts) {
    this.#parts = parts;
    this.#look = new StepInputObserver(parts);
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
    const { newest } = this.#parts.object;
    const signal = this.#look.signalFor(this.#journal);
    if (isAtRest(signal, this.#journal)) return undefined;
    this.#journal = noticed(this.#journal, signal, this.#now());
    const gathered = await this.#look.gather(this.#journal, () => this.#now(), stop);
    // A silent service takes seconds to ask.
    const input = { ...gathered, now: this.#now() };
    const step = nextStep(input);
    if (step.kind === 'nothing' || (step.kind === 'report' && newest === undefined)) return undefined;
    if (step.kind === 'await-service' || step.kind === 'await-leader') return this.#await(step, input);
    this.#awaited = undefined;
    const before = this.#journal;
    await this.#keep(journalBefore(step, before, this.#now()));
    if (step.kind !== 'report') await this.#act(step, stop);
    else if (newest !== undefined && signal !== undefined) await this.#report(step, newest, signal);
    this.#failures = 0;
    return this.#journal === before ? FAST_POLL_MS : 0;
  }

  /** Milliseconds until it is looked again; who waits without a deadline says so, once. */
  #await(step: AwaitStep, { host, node, now }: StepInput): number {
    const isNew = this.#awaited !== step.kind;
    this.#awaited = step.kind;
    if (step.kind === 'await-leader') {
      if (isNew) this.#parts.log.info('waiting for the leader', { cordoner: node.cordoner ?? 'unknown' });
      return LEADER_POLL_MS;
    }
    if (step.until === undefined) {
      if (isNew) this.#parts.log.warn('waiting for the service', { reason: host.problem });
      return SLOW_POLL_MS;
    }
    // A process that is merely watched need not be asked as often as one that is waited for.
    return this.#journal.phase === 'soaking' ? Math.min(SLOW_POLL_MS, step.until - now) : FAST_POLL_MS;
  }

  async #act(step: Step, stop: AbortSignal): Promise<void> {
    const { perform, log, object } = this.#parts;
    const before = this.#journal;
    if (before.phase === 'idle') return;
    log.info('step', { step: step.kind, phase: before.phase });
    using watch = this.#cancelWhenSuperseded(step, stop);
    const outcome = await perform(step, before, watch.abort);
    if (!outcome.ok) log.error('the step failed', { step: step.kind, reason: outcome.reason });
    await this.#keep(journalAfter(step, before, outcome, this.#now()));
    if (!outcome.ok && this.#journal === before) throw new Error(outcome.reason);
    // Both write the Node, which may be the very object: a report that is based on what was seen before would conflict.
    if (step.kind === 'cordon-and-drain' || step.kind === 'uncordon') await object.refresh();
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

  /** Ends what can be ended early as soon as the signal that is worked on is over, or another one is in its place. */
  #cancelWhenSuperseded({ kind }: Step, stop: AbortSignal): Disposable & { abort: AbortSignal } {
    const { object } = this.#parts;
    const own = new AbortController();
    const check = (): void => {
      const signal = this.#look.signalFor(this.#journal);
      const stands = this.#journal.phase !== 'idle' && isStanding(signal, this.#journal);
      if (!stands && LONG_STEPS.includes(kind)) own.abort(new Error('the signal is over'));
    };
    // What changed while the journal was written counts too.
    check();
    return { abort: AbortSignal.any([stop, own.signal]), [Symbol.dispose]: object.onChange(check) };
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
