/** Fetches a version before the node's turn: downloaded, verified and tried out, while the service runs on untouched. */
import type { SignalCommand } from '../../signal/annotations.ts';
import type { Prefetch } from '../../signal/prefetch.ts';
import { sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { sameJson } from '../../util/json.ts';
import type { Tools } from '../../util/tools.ts';
import { type ActiveJournal, IDLE, type Journal, type Work } from '../journal.ts';
import type { RunningService, ServiceFacts } from '../service/host.ts';
import { pathsBeside } from '../state/state-directory.ts';
import type { BesideK0s } from '../step-input.ts';
import type { Step, StepOutcome } from '../steps/step.ts';
import { type Veto, vetoOf } from '../veto.ts';
import { stampOf } from './hash-file.ts';

export interface PrefetcherParts extends Tools {
  readonly observe: (journal: Journal) => Promise<ServiceFacts>;
  readonly perform: (step: Step, journal: ActiveJournal, abort: AbortSignal) => Promise<StepOutcome>;
  readonly veto: Veto;
  readonly beside: BesideK0s;
}

/** Others than the leader may write the wish. */
const MOST_SPREAD_MS = 600_000;
/** The nodes whose turn it is come first: they may ask the same server, or start on the same machine, in this moment. */
const HEAD_START_MS = 1_000;
const HOLDS_NOTHING = async (_command: SignalCommand): Promise<boolean> => await Promise.resolve(false);

/** Only to be used while the journal is idle: it shares the paths of the update. */
export class Prefetcher {
  readonly #parts: PrefetcherParts;
  /** What was asked for last; undefined before anything was seen. */
  #wish: Prefetch | 'nothing' | undefined;
  /** True when the payload of the command was tried out and is still as it was. */
  holds = HOLDS_NOTHING;
  #abort = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(parts: PrefetcherParts) {
    this.#parts = parts;
  }

  /** Takes up a wish that is new, and discards what is not wished for any more. Does not wait. */
  follow(asked: Prefetch | undefined): void {
    const wish = asked ?? 'nothing';
    if (sameJson(wish, this.#wish)) return;
    const before = this.stop();
    this.#wish = wish;
    const { signal } = (this.#abort = new AbortController());
    this.#running = before
      .then(async () => await (wish === 'nothing' ? this.#discard(signal) : this.#fetch(wish, signal)))
      .catch((error: unknown) => {
        if (!signal.aborted) this.#parts.log.warn('cannot fetch ahead', { reason: messageOf(error) });
      });
  }

  /** Resolves once nothing is written any more. What is there stays, for the update to go on from. */
  async stop(): Promise<void> {
    // Whoever asks for the same again gets it.
    this.#wish = undefined;
    this.#abort.abort(new Error('no longer asked for'));
    await this.#running;
  }

  async #fetch(wish: Prefetch, abort: AbortSignal): Promise<void> {
    const { observe, veto, beside, clock, random, log } = this.#parts;
    const { spreadMs = 0 } = wish.policy;
    await sleep(clock, HEAD_START_MS + random() * Math.min(spreadMs, MOST_SPREAD_MS), abort);
    const { running, binary, ownAgent } = await observe(IDLE);
    const { command } = wish;
    const { version } = command;
    if (running === undefined || binary === undefined || (beside !== 'replace' && ownAgent === true)) return;
    const reason = vetoOf(command, running.version, veto);
    if (reason !== undefined) return log.info('not fetching ahead', { version, reason });
    if (running.version === version && running.current) return;
    const journal = journalFor(wish, binary, running);
    log.info('fetching ahead', { version });
    await this.#perform('download', journal, abort);
    await this.#perform('trial-run', journal, abort);
    const path = pathsBeside(binary).staged;
    const stamp = await stampOf(path);
    this.holds = async (asked) => stamp !== undefined && sameJson(asked, command) && (await stampOf(path)) === stamp;
    log.info('fetched ahead', { version });
  }

  async #discard(abort: AbortSignal): Promise<void> {
    this.holds = HOLDS_NOTHING;
    const { running, binary } = await this.#parts.observe(IDLE);
    if (running === undefined || binary === undefined) return;
    const command = { id: 0, kind: 'k0supdate', url: '', version: '' } as const;
    await this.#perform('clean-up', journalFor({ rollout: '', command, policy: {} }, binary, running), abort);
  }

  async #perform(kind: 'download' | 'trial-run' | 'clean-up', journal: ActiveJournal, abort: AbortSignal) {
    const outcome = await this.#parts.perform({ kind }, journal, abort);
    if (!outcome.ok) throw new Error(outcome.reason);
  }
}

function journalFor({ rollout, command, policy }: Prefetch, binary: string, running: RunningService): ActiveJournal {
  const signal = { planId: rollout, created: '', command };
  const work: Work = { signal, policy, binary, from: running.version, original: running.process };
  return { phase: 'started', work, spent: {} };
}
