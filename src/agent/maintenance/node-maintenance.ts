/** Cordons and drains the agent's own node before an upgrade, and uncordons it afterwards. */
import {
  cordonOwner,
  exclusionOf,
  withCordon,
  withExclusion,
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
  /** Returns the name of the host's Node; undefined if no pods run on the host. */
  readonly nodeName: () => string | undefined;
  readonly delegation: Pick<LeaseDelegation, 'isExpected'>;
}

/**
 * Cordons, drains and uncordons the Node of this host. On a host without a Node nothing is cordoned, and nothing needs
 * to be done.
 */
export interface Maintenance {
  /** Returns who cordons the node now. This function is called every few seconds while the status is Cordoning or UnCordoning. */
  readonly whoCordons: (abort: AbortSignal) => Promise<Cordoner>;
  /** Returns the Node of this host, read from the API server; undefined if there is none. Rejects if no answer comes within two seconds. */
  readonly readNode: (abort: AbortSignal) => Promise<Node | undefined>;
  /**
   * Returns true if Refit set the cordon of the Node of this host. Reads the Node from the API server. Rejects if the
   * API server does not answer.
   */
  readonly hasCordon: (abort: AbortSignal) => Promise<boolean>;
  /**
   * Resolves once the node is cordoned for the owner and drained. May be repeated. It retries temporary failures, and
   * rejects with a DrainRefusedError, a DrainLateError, or the reason of `abort`.
   */
  readonly cordonAndDrain: (owner: string, drain: AgentDrain, abort: AbortSignal) => Promise<void>;
  /**
   * Removes the cordon if Refit set it. With `always` it removes any cordon. May be repeated. It does not retry failed
   * requests.
   */
  readonly uncordon: (whose: 'ours' | 'always', abort: AbortSignal) => Promise<void>;
}

const LEADER = { namespace: 'k0s-autopilot', name: 'k0s-autopilot-controller' };
/**
 * Milliseconds that a read of the Node may take. The limit is short, because the caller is watching a process in the meantime and reads the
 * Node again later.
 */
const READ_DEADLINE_MS = 2_000;
/** The pauses between retries after a temporary failure, in milliseconds. The agent's reports are retried with the same pauses. */
const RETRY = { base: 50, cap: 2_000 };
/**
 * Milliseconds for which a refused request is retried. An API server that has just started may refuse what it allows later, because it has
 * not read its RBAC rules yet.
 */
const REFUSED_MS = 60_000;

interface Retries {
  readonly parts: MaintenanceParts;
  readonly warn: (message: string, error: unknown) => void;
  readonly abort: AbortSignal;
}

/**
 * Retries until `work` succeeds. Rejects only if a pod must not be evicted, if the API server keeps refusing, or if
 * `abort` aborts.
 */
async function retryUntilDone(
  { parts: { clock, random }, warn, abort }: Retries,
  work: () => Promise<void>,
): Promise<void> {
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
      if (!isConflict(error)) warn('could not drain the node; retrying', error);
      await sleep(clock, backoffDelay(attempt, { ...RETRY, random }), abort);
    }
  }
}

/** Returns the functions that cordon, drain and uncordon this host's Node. */
export function nodeMaintenance(parts: MaintenanceParts): Maintenance {
  const { client, nodeName, delegation, clock, log } = parts;
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
  /**
   * Writes the node unless `change` returns the same object. Returns the resulting node. Rejects with a conflict if
   * somebody else has changed the node in the meantime.
   */
  const write = async (
    change: (node: Node) => Node,
    abort: AbortSignal,
  ): Promise<Node | undefined> => {
    const node = await readNode({ abort });
    const changed = node && change(node);
    if (changed === undefined || changed === node) return node;
    return await client.replace(nodes, changed, { abort });
  };
  return {
    async whoCordons(abort) {
      try {
        const { name, namespace } = LEADER;
        const cordoner = cordonerBy(await ifFound(client.get(leases, name, { namespace, abort })));
        const own = nodeName();
        // If the Lease of its node lacks the label, the agent cordons the node itself, because a leader does not drain
        // this node.
        const isOwnTask =
          cordoner === 'leader' && own !== undefined && !(await delegation.isExpected(own, abort));
        return isOwnTask ? 'self' : cordoner;
      } catch (error) {
        abort.throwIfAborted();
        warn('cannot find out who cordons the node', error);
        return 'unknown';
      }
    },
    readNode: async (abort) => await readNode({ abort, deadlineMs: READ_DEADLINE_MS }),
    async hasCordon(abort) {
      const node = await readNode({ abort });
      return node !== undefined && cordonOwner(node) !== undefined;
    },
    async cordonAndDrain(owner, asked, abort) {
      if (asked.enabled === false) return;
      using drain = ownDrain(asked, parts, abort);
      await retryUntilDone({ parts, warn, abort: drain.abort }, async () => {
        const name = nodeName();
        if (name === undefined) return;
        const written = await write((node) => cordoned(node, owner, asked), drain.abort);
        // Load balancers need time to react only if Refit excluded the node from them.
        await drain.run(name, written !== undefined && exclusionOf(written) === 'ours');
      });
    },
    uncordon: async (whose, abort) =>
      void (await write(whose === 'always' ? withoutAnyCordon : withoutCordon, abort)),
  };
}

/**
 * Returns the node with our cordon. If the policy sets a grace period for load balancers, the node is also excluded
 * from load balancers.
 */
function cordoned(node: Node, owner: string, { graceMs }: AgentDrain): Node {
  const changed = withCordon(node, owner);
  return graceMs === undefined ? changed : withExclusion(changed);
}

/** The error of a drain that took longer than the policy allows. The message names the pods that are left. */
export class DrainLateError extends Error {
  override readonly name = 'DrainLateError';
}

interface OwnDrain extends Disposable {
  readonly abort: AbortSignal;
  /**
   * `isExcluded` is true if Refit excluded the node from load balancers. Load balancers then need time to react before
   * the drain.
   */
  readonly run: (node: string, isExcluded: boolean) => Promise<void>;
}

/**
 * Prepares a drain. Its `abort` signal aborts when `parent` aborts, or with a DrainLateError when the drain exceeds its
 * time limit.
 */
function ownDrain(drain: AgentDrain, parts: MaintenanceParts, parent: AbortSignal): OwnDrain {
  const { timeoutMs, localData, unmanagedPods, gracePeriodSeconds, graceMs } = drain;
  const always = {
    ...DEFAULT_DRAIN,
    ...defined({ localData, unmanagedPods, gracePeriodSeconds }),
  };
  let progress: DrainProgress | undefined;
  const late = new AbortController();
  const abort = AbortSignal.any([parent, late.signal]);
  const giveUp = (): void => late.abort(new DrainLateError(lateness(timeoutMs ?? 0, progress)));
  const cancel =
    timeoutMs === undefined ? (): void => undefined : parts.clock.schedule(timeoutMs, giveUp);
  const run = async (node: string, isExcluded: boolean): Promise<void> => {
    const options = isExcluded ? { ...always, ...defined({ graceMs }) } : always;
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

/**
 * Says who cordons, drains and uncordons the node for a signal. It is `unknown` if the API server does not answer or no
 * leader is alive.
 */
export type Cordoner = 'self' | 'leader' | 'unknown';

/** The duration that the original leader uses, in seconds. It applies to a Lease that names no duration. */
const USUAL_DURATION_S = 60;

/**
 * Returns a function that decides from a newly read Lease who cordons the node. It remembers earlier Leases and
 * measures with its own clock how long they stay unchanged, because the clocks of two hosts cannot be compared.
 */
export function observeLease(clock: Clock): (lease: Lease | undefined) => Cordoner {
  /**
   * `since` is the time at which this renewal was first observed, in monotonic milliseconds. `isWitnessed` is true if
   * the Lease was renewed while the agent watched it.
   */
  let renewal:
    | { readonly text: string; readonly since: number; readonly isWitnessed: boolean }
    | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  const isAlive = (lease: Lease): boolean => {
    const durationMs = (lease.spec?.leaseDurationSeconds ?? USUAL_DURATION_S) * 1000;
    const now = clock.monotonic();
    const text = renewalOf(lease);
    if (renewal?.text !== text) {
      // If the agent has not read the Lease for longer than the duration of the Lease, it does not know when the Lease
      // was renewed.
      const isWitnessed = renewal !== undefined && now - askedAt < durationMs;
      renewal = { text, since: now, isWitnessed };
    }
    askedAt = now;
    const looksFresh = clock.now() - Date.parse(lease.spec?.renewTime ?? '') < durationMs;
    // A Lease whose renewTime looks recent counts as current, until it has stayed unchanged for its whole duration.
    return now - renewal.since < durationMs && (renewal.isWitnessed || looksFresh);
  };
  return (lease) => {
    if (lease === undefined || holderOf(lease) === '' || !isAlive(lease)) return 'unknown';
    return lease.metadata.labels?.[CENTRAL_CORDONING_LABEL] === holderOf(lease) ? 'leader' : 'self';
  };
}
