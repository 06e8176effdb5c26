/** Owns carrying out steps on the host: each entry may be cut short anywhere and done again. */
import type { Clock } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import type { Logger } from '../util/log.ts';
import type { DownloadLimits } from './download.ts';
import { discardDownload, download } from './download.ts';
import { replaceDurably } from './durable-files.ts';
import type { ActiveJournal } from './journal.ts';
import { pathsBeside, pathsIn } from './paths.ts';
import { endProcess } from './processes.ts';
import type { Outcome, Step } from './step.ts';
import { tryOut } from './trial-run.ts';

export interface EffectTools {
  readonly stateDirectory: string;
  /** What the download server sees: `refit-agent/<version> (<name of the object>)`. */
  readonly userAgent: string;
  readonly limits: DownloadLimits;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}

/** Milliseconds that a binary has to print its version. */
const TRIAL_TIMEOUT_MS = 10_000;
const DONE: Outcome = { ok: true };

/** Rejects only where `signal` aborts; everything else that goes wrong is an outcome. */
export async function perform(
  step: Step,
  journal: ActiveJournal,
  tools: EffectTools,
  signal: AbortSignal,
): Promise<Outcome> {
  try {
    return await effectOf(step, journal, tools, signal);
  } catch (error) {
    signal.throwIfAborted();
    return { ok: false, reason: messageOf(error) };
  }
}

async function effectOf(
  step: Step,
  { work }: ActiveJournal,
  tools: EffectTools,
  signal: AbortSignal,
): Promise<Outcome> {
  const { url, sha256, version, forceupdate } = work.signal.command;
  const { staged, part, previous } = pathsBeside(work.binary);
  const paths = { part, record: pathsIn(tools.stateDirectory).record };
  const { userAgent, limits } = tools;
  switch (step.kind) {
    case 'download':
      await download({ url, sha256, staged, paths, userAgent, limits }, { ...tools, signal });
      return DONE;
    case 'try-out':
      return await tryOut({ binary: staged, timeoutMs: TRIAL_TIMEOUT_MS, ...(forceupdate ? {} : { version }) });
    case 'keep-previous':
      await replaceDurably(work.binary, previous);
      return DONE;
    case 'swap':
      await replaceDurably(staged, work.binary);
      return DONE;
    case 'roll-back':
      await replaceDurably(previous, work.binary);
      return DONE;
    case 'restart':
      if (step.process !== undefined) await endProcess(step.process, 'SIGTERM');
      return DONE;
    case 'kill':
      await endProcess(step.process, 'SIGKILL');
      return DONE;
    case 'clean-up':
      await discardDownload({ staged, paths });
      return DONE;
    case 'begin':
    case 'report':
    case 'nothing':
    case 'await-service':
      return DONE;
  }
}
