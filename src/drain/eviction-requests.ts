/**
 * Requests the evictions of pods with EvictionRequests, checks the state of the requests regularly, and withdraws them
 * when the drain ends.
 */
import type { KubeClient } from '../kube/client.ts';
import { keyOf, type Pod } from '../kube/resources.ts';
import {
  ifFound,
  isAlreadyExists,
  isMissingRight,
  isNotFound,
  isVerdict,
} from '../kube/status-error.ts';
import { sleep } from '../util/clock.ts';
import { formatDuration } from '../util/duration.ts';
import { messageOf } from '../util/errors.ts';
import type { Tools } from '../util/tools.ts';
import { onAbort, semaphore } from '../util/waits.ts';
import { nameSome } from './budgets.ts';
import { uidOf } from './eviction-lines.ts';
import {
  type EvictionRequest,
  evictionRequests,
  foreign,
  judgeRequest,
  LIFECYCLE_PATH,
  type RequestedEviction,
  type RequestVerdict,
  requestFor,
  requestName,
  type Unreadable,
} from './eviction-request-objects.ts';
import { LOOK_MS, type LookAtRequests, sharedLook } from './requests-look.ts';
import { areRequestsServed } from './requests-served.ts';

/**
 * If no responder works on the request for a pod for this number of milliseconds, the drain evicts the pod itself,
 * without a request.
 */
const IDLE_MS = 30_000;

/**
 * The number of milliseconds that the end of a drain waits for the deletion of all its requests. A single deletion has
 * the same limit.
 */
const WITHDRAW_MS = 10_000;

/** The most EvictionRequests that are created or deleted at the same time. The limit for evictions is the same. */
const PARALLEL = 16;

/**
 * The reason with which a drain is aborted if another process continues it, for example the next leader. The
 * EvictionRequests of such a drain are not withdrawn.
 */
export class DrainHandedOverError extends Error {
  override readonly name = 'DrainHandedOverError';
}

export interface RequestParts extends Tools {
  readonly client: KubeClient;
  readonly node: string;
  readonly abort: AbortSignal;
  /** Lists the EvictionRequests once for all drains of the process. If it is absent, the drain lists them itself. */
  readonly lookAtRequests?: LookAtRequests;
  /** This function is called when the result of `waitingFor` may have changed. */
  readonly onChange: () => void;
}

export interface RequestedPods {
  /**
   * Requests the eviction of a pod. Resolves with true if the drain must evict the pod itself, and with false if the pod terminates
   * or the drain no longer wants to evict it. Never rejects.
   */
  readonly isLeftToDrain: (pod: Pod) => Promise<boolean>;
  /**
   * Withdraws the requests for all pods except `wanted` and `ending`. The pods in `ending` keep their requests until
   * they are deleted.
   */
  readonly keepOnly: (wanted: readonly Pod[], ending: readonly Pod[]) => void;
  /** Returns a text for people that says who evicts which pods; undefined if the drain waits for nobody. */
  readonly waitingFor: () => string | undefined;
  /** Stops checking the requests. Withdraws all requests, unless another process continues the drain. */
  readonly end: () => Promise<void>;
}

/** The EvictionRequest for one pod, as this drain knows it. */
interface Held {
  readonly pod: Pod;
  readonly decision: PromiseWithResolvers<boolean>;
  /** True until it is decided whether the drain evicts the pod itself. */
  isOpen: boolean;
  /**
   * A promise while the request is being created; otherwise undefined. Until the promise resolves, `mayExist` may
   * become true. The promise never rejects.
   */
  sending: Promise<void> | undefined;
  /** False if the API server cannot have stored the request. */
  mayExist: boolean;
  /** The time at which the API server answered the last attempt to create the request, in monotonic milliseconds. */
  sentAt: number;
  /** The time since which no responder works on the request, in monotonic milliseconds. */
  idleSince: number;
  describe?: (pods: string) => string;
}

/** Returns an object that requests the eviction of the pods of one node. */
export function startEvictionRequests(parts: RequestParts): RequestedPods {
  return new NodeRequests(parts);
}

class NodeRequests implements RequestedPods {
  readonly #parts: RequestParts;
  readonly #ending = new AbortController();
  readonly #abort: AbortSignal;
  /** Aborts the deletions when the end of the drain has waited for them for WITHDRAW_MS. */
  readonly #late = new AbortController();
  readonly #lookAtRequests: LookAtRequests;
  readonly #withFreePlace = semaphore(PARALLEL);
  readonly #listening: Disposable;
  /** The keys are the uids of the pods. */
  readonly #held = new Map<string, Held>();
  readonly #running = new Set<Promise<void>>();
  #isServed: Promise<boolean> | undefined;
  /** The reason why this drain makes no more EvictionRequests; undefined as long as it makes them. */
  #unusable: string | undefined;
  #looking: Promise<void> | undefined;

  constructor(parts: RequestParts) {
    this.#parts = parts;
    this.#lookAtRequests = parts.lookAtRequests ?? sharedLook(parts.client, parts.clock);
    this.#abort = AbortSignal.any([parts.abort, this.#ending.signal]);
    this.#listening = onAbort(this.#abort, () => {
      for (const entry of this.#held.values()) decide(entry, false);
    });
  }

  async isLeftToDrain(pod: Pod): Promise<boolean> {
    const { client, clock } = this.#parts;
    if (this.#unusable !== undefined || this.#abort.aborted) return !this.#abort.aborted;
    const entry: Held = {
      pod,
      decision: Promise.withResolvers(),
      isOpen: true,
      sending: undefined,
      mayExist: false,
      sentAt: clock.monotonic(),
      idleSince: clock.monotonic(),
    };
    // The entry is stored before the API server answers, so that `keepOnly` can drop the pod meanwhile.
    this.#held.set(uidOf(pod), entry);
    this.#isServed ??= areRequestsServed(client, this.#abort);
    if (!(await this.#isServed)) this.#giveUp(`the API server does not serve ${LIFECYCLE_PATH}`);
    entry.idleSince = clock.monotonic();
    await this.#startSending(entry);
    this.#looking ??= this.#lookAgain().finally(() => {
      this.#looking = undefined;
    });
    return await entry.decision.promise;
  }

  keepOnly(wanted: readonly Pod[], ending: readonly Pod[]): void {
    const wantedUids = new Set(wanted.map(uidOf));
    const endingUids = new Set(ending.map(uidOf));
    for (const [uid, entry] of this.#held) {
      if (wantedUids.has(uid)) continue;
      decide(entry, false);
      if (!endingUids.has(uid)) this.#inBackground(this.#withdraw(entry));
    }
  }

  waitingFor(): string | undefined {
    const open = this.#open().filter(({ describe }) => describe !== undefined);
    const alike = Map.groupBy(open, ({ describe }) => describe?.(''));
    const texts = [...alike.values()].flatMap((entries) => {
      const [first] = entries;
      return first?.describe?.(nameSome(entries.map(({ pod }) => keyOf(pod)))) ?? [];
    });
    return texts.length === 0 ? undefined : texts.toSorted().join('; ');
  }

  async end(): Promise<void> {
    const isHandedOver = this.#parts.abort.reason instanceof DrainHandedOverError;
    this.#ending.abort();
    this.#listening[Symbol.dispose]();
    await this.#looking;
    if (!isHandedOver)
      for (const entry of this.#held.values()) this.#inBackground(this.#withdraw(entry));
    const tooLate = (): void =>
      this.#late.abort(new Error(`not deleted within ${formatDuration(WITHDRAW_MS)}`));
    const cancel = this.#parts.clock.schedule(WITHDRAW_MS, tooLate);
    while (this.#running.size > 0) await Promise.all(this.#running);
    cancel();
  }

  #open(): Held[] {
    return [...this.#held.values()].filter(({ isOpen }) => isOpen);
  }

  #inBackground(work: Promise<void>): void {
    const ended = work.finally(() => this.#running.delete(ended));
    this.#running.add(ended);
  }

  async #startSending(entry: Held): Promise<void> {
    entry.sending ??= this.#withFreePlace(async () => await this.#send(entry)).finally(() => {
      entry.sending = undefined;
      entry.sentAt = this.#parts.clock.monotonic();
    });
    await entry.sending;
  }

  /**
   * Creates the request. Creates nothing if, while this call waited in the queue, the drain removed the pod or decided
   * to evict it itself.
   */
  async #send(entry: Held): Promise<void> {
    const { client, node, log } = this.#parts;
    const { pod } = entry;
    if (this.#held.get(uidOf(pod)) !== entry || !entry.isOpen) return;
    const { namespace } = pod.metadata;
    const options = { namespace, abort: this.#abort };
    try {
      await client.create(evictionRequests, requestFor(pod, node), options);
      entry.mayExist = true;
      log.info('eviction of pod requested', { pod: keyOf(pod) });
    } catch (error) {
      const isOpenQuestion = isAlreadyExists(error) || !isVerdict(error);
      entry.mayExist ||= isOpenQuestion;
      // If the API server gave no final answer, the next check of the requests sends the request again.
      if (this.#abort.aborted || isOpenQuestion) return;
      if (isUnserved(error)) this.#giveUp(describeRefusal(error));
      // `#leave` withdraws the request, and a withdrawal waits until this function has ended. So this function must not wait for `#leave`.
      else this.#inBackground(this.#leave(entry, describeRefusal(error)));
    }
  }

  /**
   * Deletes the request. It does so even after the drain was aborted, so the deletion has its own time limit. If the
   * request is still being created, the deletion waits for the answer, because an aborted write may still succeed.
   */
  async #withdraw(entry: Held): Promise<void> {
    const { client, log } = this.#parts;
    this.#held.delete(uidOf(entry.pod));
    await entry.sending;
    if (!entry.mayExist) return;
    const { namespace } = entry.pod.metadata;
    const options = { namespace, deadlineMs: WITHDRAW_MS, abort: this.#late.signal };
    const name = requestName(entry.pod);
    const deletion = async (): Promise<void> =>
      await client.delete(evictionRequests, name, options);
    await ifFound(this.#withFreePlace(deletion)).catch((error: unknown) => {
      const problem = withRemedy(error);
      log.warn('cannot withdraw an EvictionRequest', { request: `${namespace}/${name}`, problem });
    });
  }

  /**
   * Lets the drain evict the pod without a request. The request is withdrawn first, so that only the drain evicts the
   * pod.
   */
  async #leave(entry: Held, reason: string): Promise<void> {
    const { log, onChange } = this.#parts;
    if (this.#unusable === undefined)
      log.info('pod is evicted without EvictionRequest', { pod: keyOf(entry.pod), reason });
    entry.isOpen = false;
    await this.#withdraw(entry);
    decide(entry, !this.#abort.aborted);
    onChange();
  }

  #giveUp(reason: string): void {
    if (this.#unusable === undefined)
      this.#parts.log.warn('the drain evicts pods without EvictionRequests', { reason });
    this.#unusable ??= reason;
    for (const entry of this.#open()) this.#inBackground(this.#leave(entry, reason));
  }

  async #lookAgain(): Promise<void> {
    const { clock, log } = this.#parts;
    while (this.#open().length > 0) {
      const isOver = await sleep(clock, LOOK_MS, this.#abort).then(
        () => false,
        () => true,
      );
      if (isOver) return;
      await this.#look().catch((error: unknown) => {
        if (this.#abort.aborted) return;
        if (isVerdict(error)) this.#giveUp(describeRefusal(error));
        else log.debug('the EvictionRequests cannot be listed', { problem: messageOf(error) });
      });
    }
  }

  async #look(): Promise<void> {
    const { clock, onChange } = this.#parts;
    const open = this.#open();
    const { begunAt, requests, evictions } = await this.#lookAtRequests(this.#abort);
    // If a request was created after the shared list call began, the result of that call may not contain the request.
    for (const entry of open.filter(({ isOpen, sentAt }) => isOpen && sentAt <= begunAt)) {
      const isFor = isAbout(entry.pod);
      const request = requests.find(
        (each) => each.metadata.name === requestName(entry.pod) && isFor(each),
      );
      const known: readonly RequestedEviction[] | Unreadable =
        'error' in evictions ? { problem: withRemedy(evictions.error) } : evictions.filter(isFor);
      this.#judge(entry, judgeRequest(request, known, clock.now()));
    }
    onChange();
  }

  #judge(entry: Held, verdict: RequestVerdict): void {
    const now = this.#parts.clock.monotonic();
    if (verdict.kind === 'failed') {
      this.#inBackground(this.#leave(entry, verdict.reason));
      return;
    }
    if (verdict.kind === 'active') entry.idleSince = now;
    if (now - entry.idleSince >= IDLE_MS) {
      const reason = `nobody has worked on the EvictionRequest for ${formatDuration(IDLE_MS)}`;
      // If no controller observes this request, no controller will observe the next request either.
      if (verdict.kind === 'idle' && !verdict.isObserved) this.#giveUp(reason);
      else this.#inBackground(this.#leave(entry, reason));
      return;
    }
    if (verdict.kind === 'absent') this.#inBackground(this.#startSending(entry));
    else entry.describe = verdict.describe;
  }
}

function decide(entry: Held, isLeft: boolean): void {
  entry.isOpen = false;
  entry.decision.resolve(isLeft);
}

/** Returns a function that checks whether the target of an object is this pod, and not another pod with the same name. */
function isAbout({ metadata: { uid } }: Pod) {
  return ({ spec }: Pick<EvictionRequest, 'spec'> | Pick<RequestedEviction, 'spec'>): boolean =>
    spec.target.pod?.uid === uid;
}

/** Returns true if the kind is not served. An error about a namespace that is gone has the same code. */
function isUnserved(error: unknown): boolean {
  return isNotFound(error) && error.status.details?.kind !== 'namespaces';
}

function describeRefusal(error: unknown): string {
  return `EvictionRequests are refused: ${withRemedy(error)}`;
}

/** Returns the message of the error. If a right is missing, it also says how to get it. */
function withRemedy(error: unknown): string {
  const remedy = isMissingRight(error)
    ? '; `refit install rights eviction-requests` prints this right'
    : '';
  return `${foreign(messageOf(error))}${remedy}`;
}
