/** Runs the agent's loop: observe the object and the host, decide, save the journal, act, save the journal. */
import { annotated, type KubeObject } from '../kube/resources.ts';
import { isConflict, isRefusal, StatusError } from '../kube/status-error.ts';
import { decodeReport, encodeReport, type SignalData } from '../signal/annotations.ts';
import { type FinalStatus, isFinal } from '../signal/names.ts';
import { decodePrefetch } from '../signal/prefetch.ts';
import { backoffDelay } from '../util/clock.ts';
import { messageOf, unlessError } from '../util/errors.ts';
import { sameJson } from '../util/json.ts';
import { sparingly } from '../util/log.ts';
import { type ActiveJournal, IDLE, type Journal, signalKeyOf } from './journal.ts';
import { isAtRest, isCurrentSignal, nextStep } from './next-step.ts';
import { type CrashReporter, type CrashReportParts, crashReporter } from './object/crash-report.ts';
import { withReport } from './object/report-writer.ts';
import { type ChangingObject, changeOrTimeout, eitherOf } from './object/signal-object.ts';
import { type ObserverParts, type StepInputs, stepInputs } from './observe.ts';
import { withCrashStory } from './service/crash-story.ts';
import { isDiskFull } from './state/durable-files.ts';
import type { StepInput } from './step-input.ts';
import type { Step, StepOutcome } from './steps/step.ts';
import { journalAfter, journalBefore, resumed, withObservedStatus } from './transitions.ts';

/** One agent follows one object with one journal. A host with two objects runs two agents. */
export interface AgentParts extends ObserverParts, Pick<CrashReportParts, 'accountOf'> {
  readonly loadJournal: () => Promise<Journal>;
  /** Saves the journal. Resolves once it is on the disk. */
  readonly saveJournal: (journal: Journal) => Promise<void>;
  /** Carries out a step. Rejects only when `abort` aborts. */
  readonly perform: (
    step: Step,
    journal: ActiveJournal,
    abort: AbortSignal,
  ) => Promise<StepOutcome>;
  /**
   * The Node of this host, if `object` is not that Node but pods run here. While the agent watches a new process, it
   * ends its pause early if this Node changes. The change may be a heartbeat of the kubelet, and the upgrade of the
   * next node waits for that heartbeat.
   */
  readonly ownNode?: ChangingObject;
  /**
   * The agent calls this when there is nothing left to do: after its start, and after each signal.
   */
  readonly onRest?: () => void;
  /**
   * Calls `listener` when the missing socket of the service appears. Returns undefined if the
   * socket exists already, or if its directory cannot be watched.
   */
  readonly watchForSocket?: (listener: () => void) => (() => void) | undefined;
  /**
   * The agent calls this before its last report on a signal. That report has the status UnCordoning if a leader
   * uncordons the node, because the leader then writes the final status. Returns the annotations that announce the
   * agent. The agent waits at most two seconds for these annotations and adds them to the report. Never rejects.
   */
  readonly beforeLastReport?: (
    signal: SignalData,
    status: LastReported,
  ) => Promise<Readonly<Record<string, string>>>;
  readonly random: () => number;
}

/**
 * Milliseconds between two observations while the agent waits for a service to answer. The agent polls, because nothing signals that a
 * service with an existing socket begins to answer.
 */
const FAST_POLL_MS = 40;
/**
 * The agent polls at this interval in milliseconds while it watches for the socket, because the service may also start
 * with another socket, or end at once.
 */
const NO_SOCKET_POLL_MS = 250;
const SLOW_POLL_MS = 1_000;
/**
 * Milliseconds between two checks of who cordons the node, or of which agent acts on it. The agent polls, because it
 * does not watch the leader's Lease.
 */
const LEADER_POLL_MS = 5_000;
/**
 * The last report on a signal waits at most this many milliseconds for the annotations that announce the agent. The
 * limit is short, because the next node waits for the report.
 */
const ANNOUNCEMENT_MS = 2_000;
/** A roll-back waits at most this many milliseconds until its first report, with the status RollingBack, is written. */
const BEFORE_ROLL_BACK_MS = 5_000;
/**
 * A roll-back waits for the first read of the object, but at most until this many milliseconds after the start of the
 * agent.
 */
const READ_WITHIN_MS = 10_000;
/**
 * The pauses between retries, in milliseconds. They are short for two reasons: an API server that restarts together
 * with its node answers again within seconds, and the next node waits for the report.
 */
const RETRY = { base: 50, cap: 2_000 };
/**
 * The pauses after a refusal, in milliseconds. They grow longer, because the server repeats a refusal until its state
 * changes. The first pauses are short, because a server that has just started may refuse a request and accept it soon
 * afterwards.
 */
const REFUSED_RETRY = { base: 50, cap: 60_000 };

/** These steps may take minutes and are useless once the signal has ended. */
const LONG_STEPS: readonly Step['kind'][] = [
  'download',
  'trial-run',
  'snapshot-etcd',
  'cordon-and-drain',
  'fetch-bundle',
  'stage-upgrade',
];

/**
 * The time that the agent waits before its next decision, in milliseconds. Undefined means that it waits without a
 * limit. `service` means that the agent polls at short intervals until the service answers.
 */
type Pause = number | 'service' | undefined;

type AwaitStep = Extract<Step, { kind: `await-${string}` }>;

/** A status that may be the last one that the agent reports on a signal. */
export type LastReported = FinalStatus | 'UnCordoning';

function isLastReported(status: string): status is LastReported {
  return status === 'UnCordoning' || isFinal(status);
}

function isAwait(step: Step): step is AwaitStep {
  return step.kind.startsWith('await-');
}

export class Agent {
  readonly #parts: AgentParts;
  readonly #observer: StepInputs;
  readonly #epoch: number;
  readonly #startedAt: number;
  #journal: Journal = IDLE;
  #failures = 0;
  #refusals = 0;
  /**
   * The `created` of the last signal that has a report without the annotations that announce the agent. The report
   * lacks them because they took too long.
   */
  #unannounced: SignalData['created'] | undefined;
  readonly #shouldLog: (text: string) => boolean;
  #isUnheard = false;
  /** The `created` of the last signal that this agent ignores, because k0s's own agent works on that signal. */
  #left: SignalData['created'] | undefined;
  #awaited: AwaitStep['kind'] | undefined;
  #isResting = false;
  readonly #reportCrashes: CrashReporter;
  /** The wait for the socket of a service that is starting; undefined if the agent does not wait for one. */
  #socket: { readonly came: Promise<'came'>; readonly unwatch: () => void } | undefined;

  constructor(parts: AgentParts) {
    this.#parts = parts;
    this.#observer = stepInputs(parts);
    this.#reportCrashes = crashReporter(parts);
    this.#startedAt = parts.clock.now();
    this.#epoch = this.#startedAt - parts.clock.monotonic();
    this.#shouldLog = sparingly(parts.clock);
  }

  /** Works until `stop` aborts. Rejects only if the journal cannot be read. */
  async run(stop: AbortSignal): Promise<void> {
    const { object, log, clock } = this.#parts;
    this.#journal = resumed(await this.#parts.loadJournal(), this.#now());
    if (this.#journal.phase !== 'idle') log.info('resuming', { phase: this.#journal.phase });
    // The watch of the object runs in the background, because the loop must not wait for the API server. That server
    // may run on this host and may need the restart that the agent is about to order.
    void object.follow(stop);
    while (!stop.aborted) {
      const watched = this.#watched();
      const { version } = watched;
      const pauseMs = await this.#decideAndAct(stop).catch((error: unknown) =>
        this.#failed(error, stop),
      );
      if (pauseMs !== 'service') this.#forgetSocket();
      if (pauseMs === 'service') await this.#pauseForService(watched, version, stop);
      else if (pauseMs !== 0) await changeOrTimeout(watched, version, pauseMs, { clock, stop });
    }
    this.#forgetSocket();
    await this.#parts.prefetcher?.stop();
  }

  /**
   * Returns the object whose changes end a pause of the agent. This is the agent's own object. While the agent watches
   * a new process, it is the own object combined with the Node of the host.
   */
  #watched(): ChangingObject {
    const { object, ownNode } = this.#parts;
    return ownNode !== undefined && this.#journal.phase === 'soaking'
      ? eitherOf(object, ownNode)
      : object;
  }

  /**
   * Waits for the service. The watch for the socket continues while the agent observes the host, because that takes
   * long on a busy machine.
   */
  async #pauseForService(
    watched: ChangingObject,
    version: number,
    stop: AbortSignal,
  ): Promise<void> {
    const { clock, watchForSocket } = this.#parts;
    if (this.#socket === undefined) {
      const { promise: came, resolve } = Promise.withResolvers<'came'>();
      const unwatch = watchForSocket?.(() => resolve('came'));
      this.#socket = unwatch && { unwatch, came };
    }
    const { came } = this.#socket ?? {};
    await changeOrTimeout(watched, version, came ? NO_SOCKET_POLL_MS : FAST_POLL_MS, {
      clock,
      stop,
      woken: came,
    });
    if ((await Promise.race([came, Promise.resolve()])) === 'came') this.#forgetSocket();
  }

  #forgetSocket(): void {
    this.#socket?.unwatch();
    this.#socket = undefined;
  }

  /**
   * Makes one decision and carries out its step. Returns the pause until the next decision, which ends early if the
   * object changes.
   */
  async #decideAndAct(stop: AbortSignal): Promise<Pause> {
    const { newest } = this.#parts.object;
    const signal = this.#observer.signalFor(this.#journal);
    const wasResting = this.#isResting;
    this.#isResting = isAtRest(signal, this.#journal);
    if (this.#isResting) {
      if (!wasResting) this.#parts.onRest?.();
      const { object, prefetcher } = this.#parts;
      if (object.isKnown) prefetcher?.follow(decodePrefetch(newest?.metadata.annotations));
      return undefined;
    }
    await this.#parts.prefetcher?.stop();
    this.#journal = withObservedStatus(this.#journal, signal, this.#now());
    const gathered = await this.#observer.gather(this.#journal, () => this.#now(), stop);
    const unread = newest === undefined ? { unreadUntil: this.#startedAt + READ_WITHIN_MS } : {};
    // The clock is read again for `now`, because a request to an unresponsive service takes seconds.
    const input = { ...gathered, ...unread, now: this.#now(), isUnheard: this.#isUnheard };
    const step = await this.#withStory(nextStep(input), input);
    if (step.kind === 'stand-aside') {
      const { created = '' } = signal ?? {};
      const { reason } = step;
      if (this.#left !== created)
        this.#parts.log.warn("leaving this signal to k0s's own agent", { created, reason });
      this.#left = created;
      // The agent asks again after a pause, because nothing signals that k0s was started without its own agent.
      if (this.#journal.phase === 'idle') return LEADER_POLL_MS;
    }
    // The agent takes a risky step only if it has read the object. While this agent was down, k0s's own agent may have
    // continued with the signal.
    const isRisky =
      step.kind === 'download' || (step.kind === 'swap' && this.#journal.phase === 'kept');
    const isBlind = isRisky && this.#parts.beside !== 'replace';
    if (step.kind === 'nothing' || ((step.kind === 'report' || isBlind) && newest === undefined))
      return undefined;
    if (step.kind === 'await-service') await this.#reportCrashes(this.#journal, signal, input);
    if ('reason' in step && isAwait(step) && newest && signal)
      await this.#reportWait(newest, signal, step.reason);
    if (isAwait(step)) return this.#await(step, input);
    this.#awaited = undefined;
    const before = this.#journal;
    await this.#save(journalBefore(step, before, this.#now()));
    const announced = await this.#announced(step, signal);
    // The object has changed, so the API server would refuse a report that is based on the old version. For example, a
    // kubelet that starts writes the Node at the same moment.
    if (step.kind === 'report' && this.#parts.object.newest !== newest) return 0;
    if (step.kind !== 'report') await this.#act(step, stop);
    else if (newest !== undefined && signal !== undefined)
      await this.#report(step, annotated(newest, announced), signal);
    this.#failures = 0;
    this.#refusals = 0;
    this.#isUnheard = false;
    return this.#journal === before ? FAST_POLL_MS : 0;
  }

  /**
   * Returns the step. If the step is a roll-back, its reason also says how the process of the new version ended, as far as the supervisor
   * knows.
   */
  async #withStory(step: Step, { host: { exits = 0 }, now }: StepInput): Promise<Step> {
    const journal = this.#journal;
    if (step.kind !== 'roll-back' || (journal.phase !== 'restarted' && journal.phase !== 'soaking'))
      return step;
    const ms = now - (journal.restartedAt ?? now);
    const account = (await this.#parts.accountOf?.(journal, ms)) ?? {};
    return { ...step, reason: withCrashStory(step.reason, exits, account, ms) };
  }

  /**
   * Returns how long the agent pauses until the next observation, if the step is one that waits. A wait without a
   * deadline is logged once.
   */
  #await(step: AwaitStep, { host, node, now }: StepInput): Pause {
    const isNew = this.#awaited !== step.kind;
    this.#awaited = step.kind;
    if (step.kind === 'await-leader') {
      if (isNew)
        this.#parts.log.info('waiting for the leader', { cordoner: node.cordoner ?? 'unknown' });
      return LEADER_POLL_MS;
    }
    if (step.kind === 'await-clock' || step.kind === 'await-own-agent') {
      const what =
        step.kind === 'await-clock'
          ? 'the clock'
          : 'an answer to the question which agent acts on this host';
      if (isNew) this.#parts.log.warn(`waiting for ${what}`, { reason: step.reason });
      return SLOW_POLL_MS;
    }
    if (step.until === undefined) {
      if (isNew) this.#parts.log.warn('waiting for the service', { reason: host.problem });
      return SLOW_POLL_MS;
    }
    // The agent polls a process that has not answered yet more often than a process that has answered and is only being
    // watched.
    return this.#journal.phase === 'soaking' ? Math.min(SLOW_POLL_MS, step.until - now) : 'service';
  }

  async #act(step: Step, stop: AbortSignal): Promise<void> {
    const { perform, log, object } = this.#parts;
    const before = this.#journal;
    if (before.phase === 'idle') return;
    if (this.#failures === 0) log.info('step', { step: step.kind, phase: before.phase });
    using watch = this.#cancelWhenSuperseded(step, stop);
    // The end of a signal is saved before the step. Otherwise, after a crash during the step, the agent could start
    // work on a signal that has ended or that another agent handles. If the disk is full and the save fails, the step
    // is carried out anyway, because it frees disk space.
    await unlessError(isDiskFull)(this.#remember(step, before));
    const outcome = await perform(step, before, watch.abort);
    await this.#remember(step, before);
    await this.#save(journalAfter(step, before, outcome, this.#now()));
    if (!outcome.ok && this.#journal === before)
      throw outcome.error instanceof StatusError ? outcome.error : new Error(outcome.reason);
    if (!outcome.ok) log.error('the step failed', { step: step.kind, reason: outcome.reason });
    // These steps write the Node, which may be the agent's own object. Without a refresh the next report would
    // conflict.
    if (step.kind === 'cordon-and-drain' || step.kind === 'uncordon') await object.refresh();
  }

  /**
   * Returns the annotations that announce the agent, if the step may be its last report on the signal. If they are
   * slow, only one report on the signal waits for them.
   */
  async #announced(
    step: Step,
    signal: SignalData | undefined,
  ): Promise<Readonly<Record<string, string>>> {
    if (step.kind !== 'report' || signal === undefined || !isLastReported(step.status)) return {};
    const { beforeLastReport, clock, log } = this.#parts;
    const { created } = signal;
    if (beforeLastReport === undefined || this.#unannounced === created) return {};
    const late = Promise.withResolvers<undefined>();
    const cancel = clock.schedule(ANNOUNCEMENT_MS, () => late.resolve(undefined));
    const announced = await Promise.race([
      beforeLastReport(signal, step.status),
      late.promise,
    ]).finally(cancel);
    if (announced !== undefined) return announced;
    log.warn('the announcement of the agent is slow, so the report does not contain it', {
      status: step.status,
    });
    this.#unannounced = created;
    return {};
  }

  async #report(
    step: Extract<Step, { kind: 'report' }>,
    newest: KubeObject,
    signal: SignalData,
  ): Promise<void> {
    const { object, clock, log } = this.#parts;
    const after = journalAfter(step, this.#journal, { ok: true }, this.#now());
    try {
      const deadlineMs = step.status === 'RollingBack' ? BEFORE_ROLL_BACK_MS : undefined;
      await object.write(withReport(newest, signal, step, after, clock.now()), deadlineMs);
    } catch (error) {
      // The write may have succeeded although no answer came, so the object is read again for the next decision.
      if (step.status !== 'RollingBack' || isConflict(error)) await object.refresh();
      throw error;
    }
    if (after.phase === 'idle' && isFinal(step.status))
      await this.#parts.finished?.add(signal, step.status);
    log.info('reported', {
      status: step.status,
      ...(step.reason === undefined ? {} : { reason: step.reason }),
    });
    await this.#save(after);
  }

  /**
   * Reports once why the agent waits before it works on a signal. Later reasons are not reported, because the reason
   * contains a time and so changes with each attempt. The first status of the signal replaces the reported reason.
   */
  async #reportWait(newest: KubeObject, { created }: SignalData, reason: string): Promise<void> {
    if (decodeReport(newest.metadata.annotations, created) !== undefined) return;
    await this.#parts.object.write(annotated(newest, encodeReport({ created, reason })));
  }

  /** Saves that a signal has ended, because a signal that was cancelled or replaced may appear on the object again. */
  async #remember({ kind }: Step, { work }: ActiveJournal): Promise<void> {
    const { object, finished } = this.#parts;
    const status = object.newest && this.#observer.signalFor(IDLE);
    const isSame = sameJson(work.signal, status && signalKeyOf(status));
    const end = kind === 'stand-aside' ? 'left' : status?.status?.status;
    const isOver = kind === 'stand-aside' || (kind === 'clean-up' && isSame);
    if (isOver && (end === 'left' || isFinal(end))) await finished?.add(work.signal, end);
  }

  /** Aborts a long step as soon as its signal has ended or is replaced. */
  #cancelWhenSuperseded({ kind }: Step, stop: AbortSignal): Disposable & { abort: AbortSignal } {
    if (!LONG_STEPS.includes(kind)) return { abort: stop, [Symbol.dispose]: () => undefined };
    const own = new AbortController();
    const check = (): void => {
      const signal = this.#observer.signalFor(this.#journal);
      const isCurrent = this.#journal.phase !== 'idle' && isCurrentSignal(signal, this.#journal);
      if (!isCurrent) own.abort(new Error('the signal was cancelled or replaced'));
    };
    // The object may have changed before this call, while the journal was written.
    check();
    return {
      abort: AbortSignal.any([stop, own.signal]),
      [Symbol.dispose]: this.#parts.object.onChange(check),
    };
  }

  async #save(journal: Journal): Promise<void> {
    if (journal === this.#journal) return;
    await this.#parts.saveJournal(journal);
    this.#journal = journal;
  }

  /** Returns the milliseconds to pause after a failed write: 0 after a first conflict, otherwise a growing backoff. */
  #failed(error: unknown, stop: AbortSignal): number {
    if (stop.aborted) return 0;
    const { log } = this.#parts;
    const pauseMs = this.#pauseAfter(error);
    this.#isUnheard = !isConflict(error);
    const reason = messageOf(error);
    if (this.#shouldLog(reason))
      log.warn('could not finish this step; retrying', { reason, pauseMs });
    return pauseMs;
  }

  /** Counts the failure, and returns the milliseconds until the next attempt. */
  #pauseAfter(error: unknown): number {
    const { random } = this.#parts;
    const failures = this.#failures++;
    if (isRefusal(error)) return backoffDelay(this.#refusals++, { ...REFUSED_RETRY, random });
    if (isConflict(error) && failures === 0) return 0;
    return backoffDelay(failures, { ...RETRY, random });
  }

  /**
   * Returns the time of the agent's steady clock in milliseconds. The clock starts at the time of the wall clock and
   * then follows the monotonic clock, so that a change of the wall clock moves no deadline.
   */
  #now(): number {
    return this.#epoch + this.#parts.clock.monotonic();
  }
}
