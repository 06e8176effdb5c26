/**
 * Finds out whether the node's Ready condition was written after the restart, or still by the kubelet that ran before
 * the restart.
 */
import { kubeletVersionOf, type Node, readyCondition } from '../../kube/resources.ts';
import { messageOf } from '../../util/errors.ts';
import type { BasicTools } from '../../util/tools.ts';
import { kubernetesPartOf } from '../../versions/release-parts.ts';
import type { Journal, UpdateJournal } from '../journal.ts';
import type { Maintenance } from '../maintenance/node-maintenance.ts';
import type { OwnNodeFacts } from '../step-input.ts';
import type { ProcessId, ServiceFacts } from './host.ts';

export interface KubeletHeartbeatParts extends BasicTools {
  readonly maintenance: Pick<Maintenance, 'readNode'>;
  /** Returns the milliseconds since the start of the process. If the start is not known, the result can be any number. */
  readonly ageOf: (process: ProcessId) => Promise<number>;
  /** The object with the signals. */
  readonly object: { readonly newest: Node | undefined };
}

/**
 * Returns a function that finds the facts about the Ready condition. It finds no facts if no new process is being
 * watched, or if the node has no Ready condition.
 */
export function kubeletHeartbeat({
  clock,
  log,
  maintenance,
  ageOf,
  object,
}: KubeletHeartbeatParts) {
  /**
   * The time at which the API server first answered with a heartbeat from before the restart, in milliseconds of the
   * steady clock.
   */
  let staleSince: number | undefined;
  let logged = '';
  const settled = (facts: OwnNodeFacts): OwnNodeFacts => {
    staleSince = undefined;
    logged = '';
    return facts;
  };
  const logOnce = (message: string, reason: string): void => {
    if (logged !== message) log.info(message, { reason });
    logged = message;
  };
  /**
   * Returns the time at which the new process started, in milliseconds of the steady clock. The time of the restart
   * request would be too early, because the old kubelet sends heartbeats until it ends.
   */
  const startOf = async (journal: UpdateJournal, now: number): Promise<number> => {
    const { fresh: process, since = Infinity, restartedAt = -Infinity } = journal;
    const startedAt = process === undefined ? restartedAt : now - (await ageOf(process));
    // The start time is computed with a clock that may count differently. If the result is before the restart request,
    // or after the first answer, it is wrong. Then the time of the request is used instead.
    return startedAt > restartedAt && startedAt <= since ? startedAt : restartedAt;
  };
  return async (
    journal: Journal,
    { running }: ServiceFacts,
    steady: () => number,
    stop: AbortSignal,
  ) => {
    if (journal.phase !== 'soaking') return settled({});
    const now = steady();
    const { newest } = object;
    // `startedAt` is the start of the new process, converted to the current setting of the wall clock. If somebody has
    // changed the wall clock since the start, the heartbeats of the kubelet use the new setting as well.
    const startedAt = clock.now() - (now - (await startOf(journal, now)));
    try {
      // A worker that does not answer may be waiting for the API server. Then the Node is read from the API server, which
      // also shows whether the API server answers.
      const known = running && newest && isFresh(newest, journal, startedAt) ? newest : undefined;
      const seen = known ?? (await maintenance.readNode(stop));
      const ready = readyCondition(seen);
      if (seen === undefined || ready === undefined) return settled({});
      if (isFresh(seen, journal, startedAt)) return settled({ isReady: ready.status === 'True' });
    } catch (error) {
      stop.throwIfAborted();
      staleSince = undefined;
      logOnce('cannot read the heartbeat of the kubelet', messageOf(error));
      return { staleMs: 0 };
    }
    // After a kubelet has ended, Ready stays True for the `node-monitor-grace-period` (40 to 50 s). So a heartbeat is
    // required: a kubelet that starts writes its conditions at once. Its Lease would prove less, because the kubelet
    // renews the Lease before it has connected to its container runtime.
    staleSince ??= now;
    logOnce('waiting for the kubelet', 'no heartbeat since the restart');
    return { staleMs: now - staleSince };
  };
}

/**
 * Returns true if the condition was written after the restart. A condition without a heartbeat time counts as written
 * after the restart, but no kubelet writes such a condition.
 */
function isFresh(node: Node, { work }: UpdateJournal, startedAt: number): boolean {
  const ready = readyCondition(node);
  if (ready === undefined) return false;
  if (!ready.lastHeartbeatTime) return true;
  // Heartbeat times have no fractions of a second, so the heartbeat and the start may have the same second. If the Node
  // then still shows the old kubelet version, the heartbeat comes from the kubelet before the restart.
  const heard = Date.parse(ready.lastHeartbeatTime);
  const second = Math.floor(startedAt / 1000) * 1000;
  const old = kubernetesPartOf(work.from);
  // The kubelet version proves nothing if the old and the new version of k0s contain the same kubelet version.
  const isOld =
    kubeletVersionOf(node) === old && old !== kubernetesPartOf(work.signal.command.version);
  return heard > second || (heard === second && !isOld);
}
