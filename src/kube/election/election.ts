/** Leader election over a Lease: one holder at a time, judged by locally observed time alone. */
import { type Clock, sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import { DEFAULT_TOOLS, type Tools } from '../../util/tools.ts';
import type { KubeClient } from '../client.ts';
import { type Lease, leases } from '../resources.ts';
import { isAlreadyExists, isConflict, isNotFound, isVerdict, type StatusError } from '../status-error.ts';
import { type Claim, holderOf, released, renewalOf, renewed, taken, transitionsOf } from './lease-record.ts';
import { type LeadershipTerm, leadershipTerm, type Term, type TermTimes, type WriteGuard } from './write-guard.ts';

/** Times are in whole seconds: the Lease has no finer unit. Defaults as in client-go: 15 s, 10 s and 2 s. */
export interface ElectionOptions extends Partial<Tools & ReturnType<typeof timesOf>> {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly name: string;
  /** Must be new for each start of a process: a restarted process is another candidate. */
  readonly identity: string;
  /** Written with each claim; other labels on the lease stay. */
  readonly labels?: (identity: string) => Readonly<Record<string, string>>;
}

/** Ends a candidacy whose work goes on: nobody may lead before the lease expires. */
export const NOT_RELEASED = Symbol('not released');

/** Renewal has two thirds of the lease's duration, and tries five times in that. */
export function timesOf(leaseDurationMs: number): TermTimes & { readonly retryPeriodMs: number } {
  const renewDeadlineMs = (leaseDurationMs * 2) / 3;
  return { leaseDurationMs, renewDeadlineMs, retryPeriodMs: renewDeadlineMs / 5 };
}

export class Election implements WriteGuard {
  readonly name: string;
  readonly identity: string;
  readonly #options: ElectionOptions & Tools;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #times: ReturnType<typeof timesOf>;
  readonly #term: LeadershipTerm;
  readonly #listeners = new Set<(term: Term | undefined) => void>();
  /** The lease as last read, and when we first read this renewal: the holder's own clock is ignored. */
  #observed: { readonly lease: Lease; readonly renewal: string; readonly at: number } | undefined;
  #refusal: StatusError | undefined;
  #leading = false;
  #stopExpiry: () => void = () => undefined;

  constructor(options: ElectionOptions) {
    const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = { ...timesOf(15_000), ...options };
    if (!(retryPeriodMs < renewDeadlineMs && renewDeadlineMs < leaseDurationMs * 0.9)) {
      throw new RangeError('an election needs retryPeriodMs < renewDeadlineMs < 0.9 * leaseDurationMs');
    }
    const { name, identity } = options;
    this.name = name;
    this.identity = identity;
    this.#options = { ...DEFAULT_TOOLS, ...options };
    this.#times = { leaseDurationMs, renewDeadlineMs, retryPeriodMs };
    this.#clock = this.#options.clock;
    this.#log = this.#options.log.child({ lease: name, identity });
    this.#term = leadershipTerm(this.#clock, this.#times);
  }

  term(): Term | undefined {
    return this.#term.term();
  }

  beginWrite(): ReturnType<WriteGuard['beginWrite']> {
    return this.#term.beginWrite();
  }

  /** Who held the lease when it was last read; empty when nobody did. */
  leader(): string {
    return this.#observed ? holderOf(this.#observed.lease) : '';
  }

  /** The server's last answer if it refuses us the lease: a right or the namespace is missing. */
  refusal(): StatusError | undefined {
    return this.#refusal;
  }

  /** Calls `listener` when a term of ours begins, and with undefined when it ends; the returned function unsubscribes. */
  onChange(listener: (term: Term | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Stands for election until `abort`. Then waits for its writes and releases the lease, unless one may still arrive, or by NOT_RELEASED. */
  async run(abort: AbortSignal): Promise<void> {
    while (!abort.aborted) {
      const pauseMs = await this.#step(abort);
      await sleep(this.#clock, pauseMs, abort).catch(() => undefined);
    }
    if (abort.reason === NOT_RELEASED) this.#lost('stopping');
    else await this.#resign();
  }

  /** One attempt to get or keep the lease; resolves with the milliseconds until the next one. */
  async #step(abort: AbortSignal): Promise<number> {
    try {
      if (this.#leading) await this.#renew();
      else await this.#acquire(abort);
      this.#refusal = undefined;
    } catch (error) {
      const isRoutine = this.#hasChanged(error) || abort.aborted;
      this.#refusal = isVerdict(error) && !isRoutine ? error : undefined;
      const what = this.#refusal ? 'the server refuses the lease' : 'cannot reach the lease';
      if (!isRoutine) this.#log.warn(what, { problem: messageOf(error) });
      if (this.#leading) return this.#hurryMs();
    }
    return this.#leading ? this.#times.retryPeriodMs : this.#candidatePauseMs();
  }

  /** Retries sooner the less of the term is left, but never so soon that it floods a failing server. */
  #hurryMs(): number {
    const { retryPeriodMs } = this.#times;
    return Math.min(retryPeriodMs, Math.max(retryPeriodMs / 10, this.#term.remainingMs() / 4));
  }

  /** Until the lease may be free; jitter keeps two candidates apart. */
  #candidatePauseMs(): number {
    const pauseMs = this.#times.retryPeriodMs * (1 + this.#options.random() * 0.2);
    const freeInMs = this.#freeInMs();
    return freeInMs > 0 ? Math.min(pauseMs, freeInMs) : pauseMs;
  }

  async #acquire(abort: AbortSignal): Promise<void> {
    await this.#refresh(abort);
    const { name, namespace } = this.#options;
    const lease = this.#observed?.lease;
    if (this.#freeInMs() > 0) return;
    if (!lease || holderOf(lease) !== this.identity)
      await this.#write((claim) => taken(lease, { name, namespace }, claim));
    else await this.#prolong();
  }

  async #renew(): Promise<void> {
    try {
      await this.#prolong();
    } catch (error) {
      if (!this.#hasChanged(error)) throw error;
      // Perhaps only a label changed, or an earlier claim arrived whose answer was lost: read it and try once more.
      await this.#refresh();
      if (this.#leading) await this.#prolong();
    }
  }

  async #prolong(): Promise<void> {
    const lease = this.#observed?.lease;
    if (!lease || holderOf(lease) !== this.identity) return this.#lost('another process holds the lease');
    await this.#write((claim) => renewed(lease, claim));
  }

  /** Takes no `abort`: an abandoned claim could leave a lease that nobody renews. */
  async #write(next: (claim: Claim) => Lease): Promise<void> {
    const { client, identity, namespace, labels } = this.#options;
    const sentAt = this.#clock.monotonic();
    const durationSeconds = Math.ceil(this.#times.leaseDurationMs / 1000);
    const lease = next({ identity, now: this.#clock.now(), durationSeconds, labels: labels?.(identity) ?? {} });
    const options = { namespace, deadlineMs: this.#attemptMs() };
    const exists = lease.metadata.uid !== undefined;
    this.#won(await (exists ? client.replace(leases, lease, options) : client.create(leases, lease, options)), sentAt);
  }

  /** Reads the lease; ends our leadership when the lease is no longer ours. */
  async #refresh(abort?: AbortSignal): Promise<void> {
    const { client, namespace, name } = this.#options;
    try {
      this.#observe(await client.get(leases, name, { namespace, deadlineMs: this.#attemptMs(), abort }));
    } catch (error) {
      if (!isNotFound(error)) throw error;
      this.#forgetUid();
    }
    const lease = this.#observed?.lease;
    if (this.#leading && (!lease?.metadata.uid || holderOf(lease) !== this.identity))
      this.#lost('another process took the lease');
  }

  #observe(lease: Lease): void {
    const renewal = renewalOf(lease);
    const at = this.#observed?.renewal === renewal ? this.#observed.at : this.#clock.monotonic();
    this.#observed = { lease, renewal, at };
  }

  /** The lease was deleted: its holder may not know yet, and the number of transitions must not start again. */
  #forgetUid(): void {
    if (!this.#observed) return;
    const { uid: _, resourceVersion: __, ...metadata } = this.#observed.lease.metadata;
    this.#observed = { ...this.#observed, lease: { ...this.#observed.lease, metadata } };
  }

  /** Milliseconds until we may claim the lease; zero or less when it is free. */
  #freeInMs(): number {
    if (!this.#observed || ['', this.identity].includes(holderOf(this.#observed.lease))) return 0;
    const seconds = this.#observed.lease.spec?.leaseDurationSeconds;
    const durationMs = seconds === undefined ? this.#times.leaseDurationMs : seconds * 1000;
    return this.#observed.at + durationMs - this.#clock.monotonic();
  }

  #won(lease: Lease, sentAt: number): void {
    this.#observe(lease);
    this.#term.extend(transitionsOf(lease), sentAt);
    this.#stopExpiry();
    const term = this.#term.term();
    // A late answer may arrive after the end of the term.
    if (!term) return this.#lost('the lease was renewed too late');
    this.#stopExpiry = this.#clock.schedule(this.#term.remainingMs(), () => this.#lost('the lease was not renewed'));
    if (this.#leading) return;
    this.#leading = true;
    this.#log.info('leading', { term: term.number });
    this.#notify(term);
  }

  #lost(why: string): void {
    this.#stopExpiry();
    this.#term.end();
    if (!this.#leading) return;
    this.#leading = false;
    this.#log.info('no longer leading', { why });
    this.#notify(undefined);
  }

  async #resign(): Promise<void> {
    this.#lost('stopping');
    await this.#term.settled();
    if (this.leader() !== this.identity) return;
    if (this.#term.mayHaveLateWrite()) {
      this.#log.warn('the lease is not released but expires: a write of ours may still reach the server');
      return;
    }
    try {
      await this.#refresh();
      const lease = this.#observed?.lease;
      if (!lease || holderOf(lease) !== this.identity) return;
      const options = { namespace: this.#options.namespace, deadlineMs: this.#attemptMs() };
      await this.#options.client.replace(leases, released(lease, this.#clock.now()), options);
    } catch (error) {
      this.#log.warn('cannot release the lease', { problem: messageOf(error) });
    }
  }

  #notify(term: Term | undefined): void {
    for (const listener of this.#listeners) {
      try {
        listener(term);
      } catch (error) {
        this.#log.error('a listener of the election failed', { problem: messageOf(error) });
      }
    }
  }

  /** A third of the renewal time, so that one lost answer leaves room for a pause and a second attempt. */
  #attemptMs(): number {
    return this.#times.renewDeadlineMs / 3;
  }
  /** Routine: somebody else wrote. A lease that cannot be created because its namespace is missing is not. */
  #hasChanged(thrown: unknown): boolean {
    const wasThere = this.#observed?.lease.metadata.uid !== undefined;
    return isConflict(thrown) || isAlreadyExists(thrown) || (wasThere && isNotFound(thrown));
  }
}
