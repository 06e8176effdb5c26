/** Writes into the report, while the agent still waits for the new version to stay up, how often its process has ended. */

import { annotated, type KubeObject } from '../../kube/resources.ts';
import { decodeReport, encodeReport, type SignalData } from '../../signal/annotations.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import type { Journal, UpdateJournal } from '../journal.ts';
import { crashesSoFar, type SupervisorAccount } from '../service/crash-story.ts';
import type { StepInput } from '../step-input.ts';
import type { SignalObject } from './signal-object.ts';

export interface CrashReportParts {
  readonly object: Pick<SignalObject, 'newest' | 'write' | 'refresh'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** What the supervisor knows of the service since its restart, `ms` ago. */
  readonly accountOf?: (
    journal: UpdateJournal,
    ms: number,
  ) => Promise<SupervisorAccount | undefined>;
}

/** The supervisor is asked, and the Node is written, no more often than this. */
const PAUSE_MS = 5_000;
/** The update must not wait for an API server that this very service may run. */
const WRITE_DEADLINE_MS = 2_000;

/** The returned function never rejects: the report is for people, and no step depends on it. */
export function crashReporter({ object, clock, log, accountOf }: CrashReportParts) {
  let lookedAt = Number.NEGATIVE_INFINITY;
  const tell = async (newest: KubeObject, signal: SignalData, reason: string): Promise<void> => {
    const { created } = signal;
    const earlier = decodeReport(newest.metadata.annotations, created) ?? { created };
    if (countsIn(earlier.reason) === countsIn(reason)) return;
    log.warn('the new version does not stay up', { reason });
    const report = encodeReport({ ...earlier, reason });
    await object.write(annotated(newest, report), WRITE_DEADLINE_MS);
  };
  return async (
    journal: Journal,
    signal: SignalData | undefined,
    { host, now }: Pick<StepInput, 'host' | 'now'>,
  ): Promise<void> => {
    if (journal.phase !== 'restarted' || clock.monotonic() - lookedAt < PAUSE_MS) return;
    const { newest } = object;
    if (newest === undefined || signal?.status?.status !== 'Restart') return;
    const ms = now - (journal.restartedAt ?? journal.since ?? now);
    // To ask a supervisor takes time, in which a healthy service would answer.
    if (host.exits === undefined && ms < PAUSE_MS) return;
    lookedAt = clock.monotonic();
    try {
      const account = (await accountOf?.(journal, ms)) ?? {};
      const { version } = journal.work.signal.command;
      const reason = crashesSoFar(version, host.exits ?? 0, account, ms);
      if (reason !== undefined) await tell(newest, signal, reason);
    } catch (error) {
      log.info('the ends of the new process could not be reported yet', {
        error: messageOf(error),
      });
      await object.refresh().catch(() => undefined);
    }
  };
}

/** The time alone is no news. */
function countsIn(reason: string | undefined): string | undefined {
  return reason?.replace(/ in [^,]*/, '');
}
