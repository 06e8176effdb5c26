/** If a step takes long, writes the reason into the report while the step still runs. */
import { annotated, type KubeObject } from '../../kube/resources.ts';
import {
  decodeReport,
  decodeSignal,
  encodeReport,
  type SignalData,
} from '../../signal/annotations.ts';
import { sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { sameJson } from '../../util/json.ts';
import type { BasicTools } from '../../util/tools.ts';
import { type SignalKey, signalKeyOf } from '../journal.ts';
import type { SignalObject } from './signal-object.ts';

export interface ReasonReportParts extends BasicTools {
  readonly object: Pick<SignalObject, 'newest' | 'write' | 'refresh'>;
}

/**
 * Writes `reason` into the report of the signal. It retries until the reason is written, a later reason replaces it, or
 * `abort` aborts. Never rejects: the report is for people, and no step depends on it.
 */
export type ReportReason = (signal: SignalKey, reason: string, abort: AbortSignal) => Promise<void>;

/** Milliseconds between two attempts to write. */
const RETRY_MS = 1_000;
/** The deadline is short, because the upgrade must not wait for an API server that the upgraded service may run. */
const WRITE_DEADLINE_MS = 2_000;

/** Writes the reason into the report of the signal on the object. The rest of the report stays. */
export async function writeReason(
  object: Pick<SignalObject, 'write'>,
  newest: KubeObject,
  { created }: Pick<SignalKey, 'created'>,
  reason: string,
): Promise<void> {
  const earlier = decodeReport(newest.metadata.annotations, created) ?? { created };
  const report = encodeReport({ ...earlier, reason });
  await object.write(annotated(newest, report), WRITE_DEADLINE_MS);
}

/** Returns a function that reports reasons. A newer reason replaces an older reason that is not written yet. */
export function reasonReporter({ object, clock, log }: ReasonReportParts): ReportReason {
  let latest = '';

  /** Returns false if the object has not been read yet. */
  async function write(signal: SignalKey, reason: string): Promise<boolean> {
    const { newest } = object;
    if (newest === undefined) return false;
    const { annotations } = newest.metadata;
    if (!isStillThere(decodeSignal(annotations), signal)) return true;
    await writeReason(object, newest, signal, reason);
    return true;
  }

  return async (signal, reason, abort) => {
    latest = reason;
    let problem = '';
    while (!abort.aborted) {
      if (latest !== reason) return;
      try {
        if (await write(signal, reason)) return;
      } catch (error) {
        if (problem === '') log.info('could not write the reason yet', { error: messageOf(error) });
        problem = messageOf(error);
        await object.refresh().catch(() => undefined);
      }
      await sleep(clock, RETRY_MS, abort).catch(() => undefined);
    }
  };
}

/** Returns false if the signal was cancelled, replaced or removed, or if its status is no longer ApplyingUpdate. */
function isStillThere(found: SignalData | undefined, signal: SignalKey): boolean {
  return found?.status?.status === 'ApplyingUpdate' && sameJson(signalKeyOf(found), signal);
}
