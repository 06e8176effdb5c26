/** Cordons and drains the agent's own node before an update, and uncordons it after. */
import {
  cordonOwner,
  withCordon,
  withoutAnyCordon,
  withoutCordon,
} from '../../drain/cordon-marks.ts';
import {
  type DrainProgress,
  DrainRefusedError,
  describeProgress,
  drainNode,
} from '../../drain/drain-node.ts';
import { DEFAULT_DRAIN } from '../../drain/pods.ts';
import type { KubeClient, RequestOptions } from '../../kube/client.ts';
import { holderOf, renewalOf } from '../../kube/election/lease-record.ts';
import { type Lease, leases, type Node, nodes } from '../../kube/resources.ts';
import { ifFound, isConflict, isRefusal } from '../../kube/status-error.ts';
import type { AgentDrain } from '../../signal/annotations.ts';
import { CENTRAL_CORDONING_LABEL } from '../../signal/names.ts';
import { backoffDelay, type Clock, sleep } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { messageOf } from '../../util/errors.ts';
import { defined } from '../../util/json.ts';
import { sparingly } from '../../util/log.ts';
import type { Tools } from '../../util/tools.ts';
import type { LeaseDelegation } from './lease-delegation.ts';

export interface MaintenanceParts extends Tools {
  readonly client: KubeClient;
  /** Name of the host's Node; undefined when no pods run on the host. */
  readonly nodeName: () => string | undefined;
  readonly delegation: Pick<LeaseDelegation, 'isExpected'>;
}

/** What a host without a Node answers: nothing is cordoned, and nothing is to be done. */
export type Maintenance = ReturnType<typeof nodeMaintenance>;

const LEADER = { namespace: 'k0s-autopilot', name: 'k0s-autopilot-controller' };
/** Short, because the caller watches a process meanwhile and asks again. */
const READ_DEADLINE_MS = 2_000;
/** The same as for the agent's own reports. */
const RETRY = { base: 50, cap: 2_000 };
/** An API server that has just started does not know its rights yet, and refuses what it allows a moment later. */
const REFUSED_MS = 60_000;

export function nodeMaintenance(parts: MaintenanceParts) {
  const { client, nodeName, delegation, clock, random, log } = parts;
  const cordonerBy = observeLease(clock);
  const shouldLog = sparingly(clock);
  const warn = (message: string, error: unknown): void => {
    const reason = messageOf(error);
    if (shouldLog(reason)) log.warn(message, { reason });
  };
  const readNode = async (options: RequestOptions): Promise<Node | undefined> => {
    const name = nodeName();
    return name === undefined ? undefined : await ifFound(client.get(nodes, name, options));
  };
  /** Writes the node unless `change` returns it as it is; rejects with a conflict when it changed meanwhile. */
  const write = async (change: (node: Node) => Node, abort: AbortSignal): Promise<void> => {
    const node = await readNode({ abort });
    if (node === undefined) return;
    const changed = change(node);
    if (changed !== node) await client.replace(nodes, changed, { abort });
  };
  /** Stops only when a pod must not be evicted, or the API server keeps refusing. */
  const retryUntilDone = async (abort: AbortSignal, work: () => Promise<void>): Promise<void> => {
    let refusedAt = Number.POSITIVE_INFINITY;
    for (let attempt = 0; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        abort.throwIfAborted();
        if (error instanceof DrainRefusedError) throw error;
        refusedAt = isRefusal(error)
          ? Math.min(refusedAt, clock.monotonic())
          : Number.POSITIVE_INFINITY;
        if (clock.monotonic() - refusedAt >= REFUSED_MS) throw error;
        if (!isConflict(error)) warn('the drain of the node is retried', error);
        await sleep(clock, backoffDelay(attempt, { ...RETRY, random }), abort);
      }
    }
  };
  return {
    /** Called every few seconds while the status is Cordoning or UnCordoning. */
    async whoCordons(abort: AbortSignal): Promise<Cordoner> {
      try {
        const { name, namespace } = LEADER;
        const cordoner = cordonerBy(await ifFound(client.get(leases, name, { namespace, abort })));
        const own = nodeName();
        // A leader does not drain a node whose lease has no label.
        const isLeft =
          cordoner === 'leader' && own !== undefined && !(await delegation.isExpected(own, abort));
        return isLeft ? 'self' : cordoner;
      } catch (error) {
        abort.throwIfAborted();
        warn('cannot tell who cordons', error);
        return 'unknown';
      }
    },
    /** The own node as the API server has it now. Rejects when no answer comes soon. */
    readNode: async (abort: AbortSignal) => await readNode({ abort, deadlineMs: READ_DEADLINE_MS }),
    async hasCordon(abort: AbortSignal): Promise<boolean> {
      const node = await readNode({ abort });
      return node !== undefined && cordonOwner(node) !== undefined;
    },
    /** May be repeated. Retries what may pass; rejects with a DrainRefusedError or a DrainLateError, and with `abort`. */
    async cordonAndDrain(
      journalOwner: string,
      asked: AgentDrain,
      abort: AbortSignal,
    ): Promise<void> {
      if (asked.enabled === false) return;
      using drain = ownDrain(asked, parts, abort);
      await retryUntilDone(drain.abort, async () => {
        const name = nodeName();
        if (name === undefined) return;
        await write((node) => withCordon(node, journalOwner), drain.abort);
        await drain.run(name);
      });
    },
    /** Removes Refit's cordon from the own node, with `always` any cordon; may be repeated. The caller retries a rejection. */
    uncordon: async (whose: 'ours' | 'always', abort: AbortSignal) =>
      await write(whose === 'always' ? withoutAnyCordon : withoutCordon, abort),
  };
}

/** The drain took longer than the policy allows; the message names what is left. */
export class DrainLateError extends Error {
  override readonly name = 'DrainLateError';
}

/** Its `abort` aborts with its parent, or with a DrainLateError when the time is up. */
function ownDrain(drain: AgentDrain, parts: MaintenanceParts, parent: AbortSignal) {
  const { timeoutMs, localData, unmanagedPods, gracePeriodSeconds } = drain;
  const options = {
    ...DEFAULT_DRAIN,
    ...defined({ localData, unmanagedPods, gracePeriodSeconds }),
  };
  let progress: DrainProgress | undefined;
  const late = new AbortController();
  const abort = AbortSignal.any([parent, late.signal]);
  const giveUp = (): void => late.abort(new DrainLateError(lateness(timeoutMs ?? 0, progress)));
  const cancel =
    timeoutMs === undefined ? (): void => undefined : parts.clock.schedule(timeoutMs, giveUp);
  const run = async (node: string): Promise<void> => {
    const onChange = (next: DrainProgress): void => {
      progress = next;
      parts.log.info('draining', { node, ...next });
    };
    await drainNode(node, options, { ...parts, abort, onChange });
  };
  return { abort, run, [Symbol.dispose]: cancel };
}

function lateness(timeoutMs: number, progress: DrainProgress | undefined): string {
  const late = `the node was not drained within ${formatDuration(timeoutMs)}`;
  return progress === undefined ? late : `${late}: ${describeProgress(progress)}`;
}

/** Who cordons, drains and uncordons for a signal; `unknown` without an answer or without a live leader. */
export type Cordoner = 'self' | 'leader' | 'unknown';

/** The original's lease duration, for a lease that names none. */
const USUAL_DURATION_S = 60;

/** Judges a lease that was just read. Remembers earlier answers, because clocks of different hosts prove nothing. */
export function observeLease(clock: Clock): (lease: Lease | undefined) => Cordoner {
  /** `since`: monotonic milliseconds of its first observation. `isWitnessed`: it happened while we watched. */
  let renewal:
    | { readonly text: string; readonly since: number; readonly isWitnessed: boolean }
    | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  const isHeld = (lease: Lease): boolean => {
    const durationMs = (lease.spec?.leaseDurationSeconds ?? USUAL_DURATION_S) * 1000;
    const now = clock.monotonic();
    const text = renewalOf(lease);
    if (renewal?.text !== text) {
      // After a gap longer than the lease's duration nobody can tell when it was renewed.
      const isWitnessed = renewal !== undefined && now - askedAt < durationMs;
      renewal = { text, since: now, isWitnessed };
    }
    askedAt = now;
    const looksFresh = clock.now() - Date.parse(lease.spec?.renewTime ?? '') < durationMs;
    // A fresh look counts until it stays unchanged for its whole duration.
    return now - renewal.since < durationMs && (renewal.isWitnessed || looksFresh);
  };
  return (lease) => {
    if (lease === undefined || holderOf(lease) === '' || !isHeld(lease)) return 'unknown';
    return lease.metadata.labels?.[CENTRAL_CORDONING_LABEL] === holderOf(lease) ? 'leader' : 'self';
  };
}
