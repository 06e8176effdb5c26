/** Downloads one version before the node is upgraded, and removes what was downloaded. */
import type { SignalCommand } from '../../signal/annotations.ts';
import type { Prefetch } from '../../signal/prefetch.ts';
import { sleep } from '../../util/clock.ts';
import { sameJson } from '../../util/json.ts';
import type { Tools } from '../../util/tools.ts';
import { type ActiveJournal, IDLE, type Journal, type Work } from '../journal.ts';
import type { RunningService, ServiceFacts } from '../service/host.ts';
import { upgradePathsOf } from '../state/state-directory.ts';
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

/**
 * The largest `spreadMs` that the agent accepts, because clients other than the leader may write
 * the annotation.
 */
const MOST_SPREAD_MS = 600_000;
/**
 * A download ahead of the upgrade waits for at least this many milliseconds, so that it does not compete with nodes
 * that are being upgraded. Such nodes may use the same server, or the same machine as this node.
 */
const HEAD_START_MS = 1_000;

/** A payload that has passed its trial run. */
interface Fetched {
  readonly command: SignalCommand;
  readonly path: string;
  /** The stamp of the file at its trial run. */
  readonly stamp: string | undefined;
}

export interface FetchAhead {
  /**
   * Waits for a random moment, downloads the version and runs it once. Does nothing if the host forbids the version or
   * already runs it. Rejects if a step fails or `abort` aborts.
   */
  readonly fetch: (wish: Prefetch, abort: AbortSignal) => Promise<void>;
  /** Removes the files of an earlier `fetch`. Rejects if that fails. */
  readonly discard: (abort: AbortSignal) => Promise<void>;
  /** Returns true if the payload of the command has passed its trial run and its file has not changed since. */
  readonly holds: (command: SignalCommand) => Promise<boolean>;
}

/** Returns functions that use the same paths as the upgrade. Only one call of `fetch` or `discard` may run at a time. */
export function fetchAhead(parts: PrefetcherParts): FetchAhead {
  const { observe, perform, veto, beside, clock, random, log } = parts;
  let fetched: Fetched | undefined;
  const carryOut = async (
    kind: 'download' | 'trial-run' | 'clean-up',
    journal: ActiveJournal,
    abort: AbortSignal,
  ) => {
    const outcome = await perform({ kind }, journal, abort);
    if (!outcome.ok) throw new Error(outcome.reason);
  };
  return {
    async fetch(wish, abort) {
      const spreadMs = Math.min(wish.policy.spreadMs ?? 0, MOST_SPREAD_MS);
      await sleep(clock, HEAD_START_MS + random() * spreadMs, abort);
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
      const path = upgradePathsOf(binary).staged;
      fetched = { command, path, stamp: await stampOf(path) };
      log.info('fetched ahead', { version });
    },
    async discard(abort) {
      fetched = undefined;
      const { running: service, binary } = await observe(IDLE);
      if (service === undefined || binary === undefined) return;
      const command = { id: 0, kind: 'k0supdate', url: '', version: '' } as const;
      const journal = journalFor({ rollout: '', command, policy: {} }, binary, service);
      await carryOut('clean-up', journal, abort);
    },
    holds: async (command) =>
      fetched?.stamp !== undefined &&
      sameJson(command, fetched.command) &&
      (await stampOf(fetched.path)) === fetched.stamp,
  };
}

/**
 * Returns the service, and the binary for which the agent may download a new version ahead; undefined while nothing may
 * be downloaded ahead on this host.
 */
export function placeToFetch(
  { running: service, binary, ownAgent, ownAgentDoubt }: ServiceFacts,
  beside: BesideK0s,
): { readonly service: RunningService; readonly binary: string } | undefined {
  if (service === undefined || binary === undefined) return undefined;
  // A download ahead is useless if k0s's own agent upgrades the host, because that agent downloads to another path.
  // That agent would also find a signal whose status is later than the last status that it wrote.
  const mayHaveOther = ownAgent === true || ownAgentDoubt !== undefined;
  return beside !== 'replace' && mayHaveOther ? undefined : { service, binary };
}

function journalFor(
  { rollout, command, policy }: Prefetch,
  binary: string,
  running: RunningService,
): ActiveJournal {
  const signal = { planId: rollout, created: '', command };
  const work: Work = { signal, policy, binary, from: running.version, original: running.process };
  return { phase: 'started', work, spent: {} };
}
