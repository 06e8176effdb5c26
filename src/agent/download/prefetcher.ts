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
  readonly perform: (
    step: Step,
    journal: ActiveJournal,
    abort: AbortSignal,
  ) => Promise<StepOutcome>;
  readonly veto: Veto;
  readonly beside: BesideK0s;
}

/** Others than the leader may write the wish. */
const MOST_SPREAD_MS = 600_000;
/** The nodes whose turn it is come first: they may ask the same server, or start on the same machine, in this moment. */
const HEAD_START_MS = 1_000;

/** Only to be used while the journal is idle: it shares the paths of the update. */
export function createPrefetcher({
  observe,
  perform,
  veto,
  beside,
  clock,
  random,
  log,
}: PrefetcherParts) {
  /** What was asked for last; undefined before anything was seen. */
  let wished: Prefetch | 'nothing' | undefined;
  /** What was tried out, and the stamp of its file then. */
  let held:
    | { readonly command: SignalCommand; readonly path: string; readonly stamp: string | undefined }
    | undefined;
  let ending = new AbortController();
  let running: Promise<void> = Promise.resolve();
  const carryOut = async (
    kind: 'download' | 'trial-run' | 'clean-up',
    journal: ActiveJournal,
    abort: AbortSignal,
  ) => {
    const outcome = await perform({ kind }, journal, abort);
    if (!outcome.ok) throw new Error(outcome.reason);
  };
  const fetch = async (wish: Prefetch, abort: AbortSignal): Promise<void> => {
    await sleep(
      clock,
      HEAD_START_MS + random() * Math.min(wish.policy.spreadMs ?? 0, MOST_SPREAD_MS),
      abort,
    );
    const place = placeToFetch(await observe(IDLE), beside);
    if (place === undefined) return;
    const { service, binary } = place;
    const { command } = wish;
    const { version } = command;
    const reason = vetoOf(command, service.version, veto);
    if (reason !== undefined) return log.info('not fetching ahead', { version, reason });
    if (service.version === version && service.current) return;
    const journal = journalFor(wish, binary, service);
    log.info('fetching ahead', { version });
    await carryOut('download', journal, abort);
    await carryOut('trial-run', journal, abort);
    const path = pathsBeside(binary).staged;
    held = { command, path, stamp: await stampOf(path) };
    log.info('fetched ahead', { version });
  };
  const discard = async (abort: AbortSignal): Promise<void> => {
    held = undefined;
    const { running: service, binary } = await observe(IDLE);
    if (service === undefined || binary === undefined) return;
    const command = { id: 0, kind: 'k0supdate', url: '', version: '' } as const;
    await carryOut(
      'clean-up',
      journalFor({ rollout: '', command, policy: {} }, binary, service),
      abort,
    );
  };
  /** Resolves once nothing is written any more. What is there stays, for the update to go on from. */
  const stop = async (): Promise<void> => {
    // Whoever asks for the same again gets it.
    wished = undefined;
    ending.abort(new Error('no longer asked for'));
    await running;
  };
  return {
    stop,
    /** True when the payload of the command was tried out and is still as it was. */
    holds: async (command: SignalCommand) =>
      held?.stamp !== undefined &&
      sameJson(command, held.command) &&
      (await stampOf(held.path)) === held.stamp,
    /** Takes up a wish that is new, and discards what is not wished for any more. Does not wait. */
    follow(asked: Prefetch | undefined): void {
      const wish = asked ?? 'nothing';
      if (sameJson(wish, wished)) return;
      const before = stop();
      wished = wish;
      const { signal } = (ending = new AbortController());
      running = before
        .then(async () => await (wish === 'nothing' ? discard(signal) : fetch(wish, signal)))
        .catch((error: unknown) => {
          if (!signal.aborted) log.warn('cannot fetch ahead', { reason: messageOf(error) });
        });
    },
  };
}

/** The service and the binary to fetch for; undefined while nothing may be fetched ahead on this host. */
export function placeToFetch(
  { running: service, binary, ownAgent, ownAgentDoubt }: ServiceFacts,
  beside: BesideK0s,
): { readonly service: RunningService; readonly binary: string } | undefined {
  if (service === undefined || binary === undefined) return undefined;
  // k0s's own agent keeps its download at a path of its own, and would find a signal that is further than itself.
  const mayHaveOther = ownAgent === true || ownAgentDoubt !== undefined;
  return beside !== 'replace' && mayHaveOther ? undefined : { service, binary };
}

export type Prefetcher = ReturnType<typeof createPrefetcher>;

function journalFor(
  { rollout, command, policy }: Prefetch,
  binary: string,
  running: RunningService,
): ActiveJournal {
  const signal = { planId: rollout, created: '', command };
  const work: Work = { signal, policy, binary, from: running.version, original: running.process };
  return { phase: 'started', work, spent: {} };
}
