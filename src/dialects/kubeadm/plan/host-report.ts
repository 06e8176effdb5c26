/** Writes the report about the upgrade of one host to its Node. No other process of Refit writes this report. */
import type { KubeClient } from '../../../kube/client.ts';
import { kubeletVersionOf, type Node, nodes } from '../../../kube/resources.ts';
import {
  isConflict,
  isForbidden,
  isUnauthorized,
  StatusError,
  TransportError,
} from '../../../kube/status-error.ts';
import { rfc3339, sleep } from '../../../util/clock.ts';
import { messageOf } from '../../../util/errors.ts';
import type { BasicTools } from '../../../util/tools.ts';
import { type HostUpgrade, type Report, reportOn, reportPatch } from './kubeadm-signal.ts';
import { REFUSED_MS } from './outages.ts';

export interface ReportParts extends BasicTools {
  /** The client that writes the report. It writes only while this process holds the lease. */
  readonly writer: KubeClient;
}

export interface HostReport {
  /** Returns the last report, even if it is not written yet. */
  latest(): Report;
  /**
   * Adds fields to the report. Resolves when the report is written. Rejects if `until` aborts, or if the API server
   * refuses the write for too long.
   */
  add(more: Partial<Report>, until?: AbortSignal): Promise<void>;
  /** Begins a step, and adds the duration of the previous step to the report. Resolves and rejects like `add`. */
  enter(step: string, more?: Partial<Pick<Report, 'state' | 'message' | 'touched'>>): Promise<void>;
}

/**
 * The milliseconds between two attempts to write. If the cluster has only one API server, it is unavailable for more
 * than a minute while it is replaced.
 */
const RETRY_MS = 1000;

/** Returns the report of a new attempt, without writing it. The Node may still have an older report. */
export function hostReport(
  { writer, clock, log }: ReportParts,
  { target, rollout, parts }: HostUpgrade,
  abort: AbortSignal,
): HostReport {
  const { key, name, since } = target;
  let report: Report = {
    rollout,
    target: key,
    attempt: since,
    state: 'working',
    step: '',
    since,
    spent: {},
    ...(parts.includes('kubelet') && { upgradesKubelet: true }),
  };
  let began = clock.monotonic();
  let written: Promise<void> = Promise.resolve();
  let found: EarlierReport | undefined;

  /** Writes the reports one after the other, so that the last report replaces all earlier ones. */
  async function add(more: Partial<Report>, until = abort): Promise<void> {
    report = { ...report, ...more };
    const added = report;
    const earlier = written.catch(() => undefined);
    written = earlier.then(async () => await write(added, until));
    await written;
  }

  /**
   * Writes the report. Retries after an error, because the API server and the lease are unavailable while kubeadm
   * replaces the API server. If the report is about a failure, the number of retries has no limit.
   */
  async function write(added: Report, until: AbortSignal): Promise<void> {
    let refusedAt = Number.POSITIVE_INFINITY;
    for (;;) {
      until.throwIfAborted();
      try {
        found ??= foundOn(await writer.get(nodes, name), added);
        await writer.patch(nodes, name, reportPatch({ ...found, ...added }), { type: 'merge' });
        return;
      } catch (error) {
        const isRefused = isUnauthorized(error) || isForbidden(error);
        const isBusy = error instanceof StatusError && (error.code >= 500 || error.code === 429);
        if (!(error instanceof TransportError) && !isConflict(error) && !isBusy && !isRefused)
          throw error;
        const problem = messageOf(error);
        if (isRefused && refusedAt === Number.POSITIVE_INFINITY)
          log.warn('the API server refuses the report of the host, retrying', {
            node: name,
            problem,
          });
        refusedAt = isRefused ? Math.min(refusedAt, clock.monotonic()) : Number.POSITIVE_INFINITY;
        if (added.state !== 'failed' && clock.monotonic() - refusedAt >= REFUSED_MS) throw error;
        await sleep(clock, RETRY_MS, until);
      }
    }
  }

  return {
    latest: () => report,
    add,
    async enter(step, more = {}) {
      const now = clock.monotonic();
      const spent =
        report.step === '' ? {} : { ...report.spent, [report.step]: Math.round(now - began) };
      began = now;
      await add({ step, since: rfc3339(clock.now()), spent, message: undefined, ...more });
    },
  };
}

interface EarlierReport {
  readonly from: string | undefined;
  readonly touched?: boolean;
  readonly touchedBefore: boolean;
}

/**
 * Returns the values that the new attempt takes from the report of an earlier attempt. From a killed attempt of the same
 * rollout, these are the version before that attempt, and `touched`.
 */
export function foundOn(
  node: Node,
  { rollout, target }: Pick<Report, 'rollout' | 'target'>,
): EarlierReport {
  const earlier = reportOn(node);
  const isSame = earlier?.rollout === rollout && earlier.target === target;
  return {
    from: (isSame ? earlier.from : undefined) ?? kubeletVersionOf(node),
    ...(isSame && earlier.touched ? { touched: true } : {}),
    touchedBefore: wasTouched(earlier, isSame),
  };
}

/**
 * Returns true if an earlier attempt may have changed the kubelet of the host, and none has finished upgrading it since. An attempt
 * that upgrades no kubelet drains no node, so its changes do not matter here.
 */
function wasTouched(earlier: Report | undefined, isSame: boolean): boolean {
  if (earlier === undefined) return false;
  // Nobody knows what happened before the report of an earlier release.
  const wasBefore = earlier.touchedBefore ?? true;
  if (earlier.state === 'finished') return wasBefore && earlier.upgradesKubelet !== true;
  return wasBefore || (!isSame && earlier.upgradesKubelet === true && earlier.touched === true);
}
