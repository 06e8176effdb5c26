/** Tells whether the node's Ready condition is from after the restart, or a leftover of the kubelet before it. */
import { kubeletVersionOf, type Node, readyCondition } from '../../kube/resources.ts';
import { messageOf } from '../../util/errors.ts';
import type { Tools } from '../../util/tools.ts';
import { kubernetesPartOf } from '../../versions/release-parts.ts';
import type { Journal, UpdateJournal } from '../journal.ts';
import type { Maintenance } from '../maintenance/node-maintenance.ts';
import type { OwnNodeFacts } from '../step-input.ts';
import type { ProcessId, ServiceFacts } from './host.ts';

export interface KubeletHeartbeatParts extends Pick<Tools, 'clock' | 'log'> {
  readonly maintenance: Pick<Maintenance, 'readNode'>;
  /** Milliseconds since the process started; any number when unknown. */
  readonly ageOf: (process: ProcessId) => Promise<number>;
  /** The object with the signals. */
  readonly object: { readonly newest: Node | undefined };
}

/** Answers empty when no new process is watched, and without a Ready condition. */
export function kubeletHeartbeat({
  clock,
  log,
  maintenance,
  ageOf,
  object,
}: KubeletHeartbeatParts) {
  /** Steady milliseconds since the API server first answered with a heartbeat from before the restart. */
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
  /** Steady milliseconds. The order of the restart would be too early: the old kubelet reports until its end. */
  const startOf = async (journal: UpdateJournal, now: number): Promise<number> => {
    const { fresh: process, since = Infinity, restartedAt = -Infinity } = journal;
    const startedAt = process === undefined ? restartedAt : now - (await ageOf(process));
    // A start outside of order and first answer is from a clock that counts otherwise.
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
    // In today's wall clock: if it was set meanwhile, so was the kubelet's.
    const startedAt = clock.now() - (now - (await startOf(journal, now)));
    try {
      // A worker that does not answer may wait for the API server.
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
    // After a kubelet ends, Ready stays true for the `node-monitor-grace-period` (40 to 50 s). A kubelet that starts writes its
    // conditions at once. Its lease would prove less: it is renewed before the kubelet has asked its container runtime.
    staleSince ??= now;
    logOnce('waiting for the kubelet', 'no heartbeat since the restart');
    return { staleMs: now - staleSince };
  };
}

/** A condition without a heartbeat time, which no kubelet writes, counts as fresh. */
function isFresh(node: Node, { work }: UpdateJournal, startedAt: number): boolean {
  const ready = readyCondition(node);
  if (ready === undefined) return false;
  if (!ready.lastHeartbeatTime) return true;
  // Heartbeats have whole seconds: in that of the start, a kubelet of the old version is the one before.
  const heard = Date.parse(ready.lastHeartbeatTime);
  const second = Math.floor(startedAt / 1000) * 1000;
  const old = kubernetesPartOf(work.from);
  // Both versions may have the same kubelet.
  const isOld =
    kubeletVersionOf(node) === old && old !== kubernetesPartOf(work.signal.command.version);
  return heard > second || (heard === second && !isOld);
}
