/**
 * Adds to the report how often the process of the new version has ended, while the agent waits for the first answer of
 * that version.
 */

import type { KubeObject } from '../../kube/resources.ts';
import { decodeReport, type SignalData } from '../../signal/annotations.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import type { Journal, UpdateJournal } from '../journal.ts';
import { crashesSoFar, type SupervisorAccount } from '../service/crash-story.ts';
import type { StepInput } from '../step-input.ts';
import { writeReason } from './reason-report.ts';
import type { SignalObject } from './signal-object.ts';

export interface CrashReportParts {
  readonly object: Pick<SignalObject, 'newest' | 'write' | 'refresh'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Returns what the supervisor knows about the service since its restart, which was `ms` milliseconds ago. */
  readonly accountOf?: (
    journal: UpdateJournal,
    ms: number,
  ) => Promise<SupervisorAccount | undefined>;
}

/** The shortest pause between two requests to the supervisor, or between two writes of the Node, in milliseconds. */
const PAUSE_MS = 5_000;

/** Reports on the object how often the process of the new version ended, if that has changed. Never rejects. */
export type CrashReporter = (
  journal: Journal,
  signal: SignalData | undefined,
  input: Pick<StepInput, 'host' | 'now'>,
) => Promise<void>;

/** The report is for people, so no step depends on it. */
export function crashReporter({ object, clock, log, accountOf }: CrashReportParts): CrashReporter {
  let lookedAt = Number.NEGATIVE_INFINITY;
  const report = async (newest: KubeObject, signal: SignalData, reason: string): Promise<void> => {
    const { created } = signal;
    const earlier = decodeReport(newest.metadata.annotations, created);
    if (countsIn(earlier?.reason) === countsIn(reason)) return;
    log.warn('the new version does not keep running', { reason });
    await writeReason(object, newest, signal, reason);
  };
  return async (journal, signal, { host, now }) => {
    if (journal.phase !== 'restarted' || clock.monotonic() - lookedAt < PAUSE_MS) return;
    const { newest } = object;
    if (newest === undefined || signal?.status?.status !== 'Restart') return;
    const ms = now - (journal.restartedAt ?? journal.since ?? now);
    // During the first seconds after the restart the supervisor is not asked, because a request takes time, and a
    // healthy service may answer in the meantime.
    if (host.exits === undefined && ms < PAUSE_MS) return;
    lookedAt = clock.monotonic();
    try {
      const account = (await accountOf?.(journal, ms)) ?? {};
      const { version } = journal.work.signal.command;
      const reason = crashesSoFar(version, host.exits ?? 0, account, ms);
      if (reason !== undefined) await report(newest, signal, reason);
    } catch (error) {
      log.info('could not report yet how often the new process ended', {
        error: messageOf(error),
      });
      await object.refresh().catch(() => undefined);
    }
  };
}

/** Returns the reason without times, so that a report is written only if more than the time has changed. */
function countsIn(reason: string | undefined): string | undefined {
  return reason?.replace(/ in [^,]*/, '');
}
